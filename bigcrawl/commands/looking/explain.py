from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result, named_lines
from bigcrawl.commands.steering.budget import limits_text
from bigcrawl.commands.steering.pause import discovery_text
from bigcrawl.scheduler.rules.callbacks import DAMAGED
from bigcrawl.stats import SCRAPY_STATS
from bigcrawl.stored.answers import explain_stored
from bigcrawl.views.explain import explain_url, page_of
from bigcrawl.views.feature import all_views
from bigcrawl.views.newest_files import REMEDY
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

_SCOPES: Final = {
    "host": "only links from its own host are followed, or to hosts of seeds",
    "pld": "only links from its own pay-level domain are followed, or to those of seeds",
    "prefix": "only links below the directories of seeds are followed",
}
_WHERE = {
    "taken": "taken by its partition's owner: it is being fetched, or about to be",
    "queued": "in Redis, in its host's queue",
    "inbox": "in its partition's inbox, not merged yet",
    "disk": "waiting on disk",
    "withheld": "withheld on disk: the crawl does not wait for it",
    "ended": "nowhere: it has ended",
    "revisit": "on disk, until the time of its next visit",
    "unrunnable": "on disk, until its request can be run",
    "nowhere": "nowhere: it was never discovered, or was forgotten",
    "unknown": "not in Redis; the partition's files are not here, so nothing else is known",
}


def explain_options(parser: argparse.ArgumentParser) -> None:
    text = "look for its page in the WARC files written since then; takes seconds per GiB"
    parser.add_argument("--find-page", action="store_true", help=text)


def explain(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show everything that the crawl knows about a URL; with BIGCRAWL_SOURCE, the stored pages' answers to it."""
    if config.source.pattern:
        stored = explain_stored(config, words[0])
        return Result(stored, stored_text(stored))
    data = in_crawl(config, explain_url, words[0])
    if getattr(opts, "find_page", False):
        data["page"] = page_of(config, data)
    return Result(data, explanation_text(data))


def stored_text(data: dict[str, Any]) -> str:
    rows = {"stored": f"{len(data['answers']):,} answers in the files of BIGCRAWL_SOURCE"}
    for number, answer in enumerate(data["answers"], 1):
        place = f"{answer['file']}, byte {answer['offset']:,}"
        said = f"status {answer['status']}" if answer["problem"] is None else f"not read: {answer['problem']}"
        rows[f"answer {number}"] = f"{place}, {said}{', the one that is given' if answer['is_given'] else ''}"
    for number, skip in enumerate(data["skipped"], 1):
        rows[f"skipped {number}"] = f"{skip['file']}, byte {skip['offset']:,}: {skip['problem']}"
    if data["skipped_records"]:
        rows["skipped"] = f"{data['skipped_records']:,} records of all files: not answers of a crawlable URL"
    return named_lines(data["url"], rows, 10)


def where_text(state: str) -> str:
    return _WHERE[state]


def explanation_text(data: dict[str, Any]) -> str:
    rows = {
        "key": f"{data['key']}, in partition {data['partition']} of {data['partitions']}, {_owner_text(data)}",
        "host": f"{data['host']}, of {data['pld']}{_in_degree(data)}",
        "seen": {True: "yes", False: "no", None: f"unknown: the partition's files are not here; {REMEDY}"}[
            data["seen"]
        ],
        "outcome": _outcome_text(data) + _page_hint(data),
        "where": where_text(data["where"]) + _location_details(data),
        "its host": _host_text(data),
        "robots": {None: "its rules are not in Redis"}.get(data["robots"], data["robots"]),
    }
    if data["depth"] is not None:
        rows["depth"] = f"{data['depth']} links from a start URL"
    if data["referrer"]:
        rows["referrer"] = data["referrer"]
    if "page" in data:
        rows |= _page_rows(data["page"])
    if data["deaths"]:
        rows["deaths"] = _deaths_text(data)
    for view in all_views():
        rows |= view.explained_rows(data)
    if data.get("blacklisted"):
        address = f", which has its address {data['blacklisted_address']}" if data["blacklisted_address"] else ""
        rows["blacklist"] = f"covers it, by the entry {data['blacklisted']}{address}: it is kept and not fetched"
    rows |= _filter_rows(data)
    if data["where"] == "nowhere" and data["seen"] is False and data["discovery"]["off_from"]:
        rows["discovery"] = discovery_text(data["discovery"])
    if data["files"]["store"]:
        rows["files"] = f"the newest point in {data['files']['store']} was read"
    if not data["inbox_is_whole"]:
        rows["but"] = "the inbox is too long to read: the URL might be in its rest"
    if data["rejected"] and not data["seen"]:
        rows["rejected"] = f"{data['rejected']:,} inbox entries of its partition could not be read: it might be in one"
    return named_lines(data["url"], rows, 10)


def _page_rows(page: dict[str, Any] | None) -> dict[str, str]:
    if page is None:
        return {"page": "in none of the files of BIGCRAWL_WARC_DIR that were written since it ended"}
    rows = {"page": f"{page['file']}, {page['bytes']:,} bytes from byte {page['offset']:,}, fetched {page['fetched']}"}
    named = {"leads to": page["redirects_to"], "referrer": page["referrer"]}
    return rows | {name: url for name, url in named.items() if url}


def _owner_text(data: dict[str, Any]) -> str:
    return f"owned by {data['owner']}" if data["owner"] else "owned by no node"


def _in_degree(data: dict[str, Any]) -> str:
    degree = data["pld_in_degree"]
    return "" if degree is None else f", which {degree:,} other PLD{' links' if degree == 1 else 's link'} to"


def _outcome_text(data: dict[str, Any]) -> str:
    outcome = data["outcome"]
    if outcome is None:
        return "none is known"
    rule = f", by the rule {outcome['rule']!r}" if outcome["rule"] else ""
    dropped = f"; the filter {outcome['filter']} kept its page from the spider" if outcome["filter"] else ""
    limit = f"; not read, or only in part: {_limit_meaning(outcome['limit'])}" if outcome["limit"] else ""
    return f"{outcome['name']}, {outcome['time']}{rule}{dropped}{limit}"


def _limit_meaning(limit: str) -> str:
    """Return the meaning of a limit, from the table of stats, which lists `depth` as a reason to drop links."""
    for key in ("bigcrawl/limits/{reason}", "bigcrawl/dropped/{reason}"):
        meaning = dict(next(stat for stat in SCRAPY_STATS if stat.key == key).values).get(limit)
        if meaning is not None:
            return f"{limit}, {meaning}"
    return limit


def _page_hint(data: dict[str, Any]) -> str:
    is_answered = data["outcome"] is not None and data["outcome"]["name"].startswith("status:")
    return "; --find-page looks for its page" if is_answered and "page" not in data else ""


def _deaths_text(data: dict[str, Any]) -> str:
    times = "a death" if data["deaths"] == 1 else f"{data['deaths']:,} deaths"
    if data["is_dead_letter"]:
        return f"it was in process at {times} of nodes, and is a dead letter; `scrapy frontier dead --retry` queues it"
    return f"it was in process at {times} of nodes, and is tried again with few others or alone"


def _location_details(data: dict[str, Any]) -> str:
    if limits := limits_text(data.get("limits", {})):
        return f"; its limits are {limits}, see `scrapy frontier budget`"
    if data["where"] in ("disk", "withheld"):
        return _turn_text(data)
    if data["where"] != "unrunnable":
        return _place_in_queue(data)
    if data["lacks_method"] == DAMAGED:
        return ": it could not be decoded; each start tries it again, and BIGCRAWL_CALLBACKS may drop it"
    return f": the spider had no method {data['lacks_method']}; a start with one, or with BIGCRAWL_CALLBACKS, continues"


def _turn_text(data: dict[str, Any]) -> str:
    """Describe the current turn of the URL's PLD, which is known without reading the queues."""
    if data["pld_over_budget"]:
        return "; its PLD has more URLs than its budget lets pass for now"
    if data["pld_turn"] is None or data["pld_turn"] < data["turn"]:
        return ""
    return f"; the last URL of its PLD goes in turn {data['pld_turn']:,}, and this is turn {data['turn']:,}"


def _place_in_queue(data: dict[str, Any]) -> str:
    ahead = f", behind {data['ahead']:,} others" if data["ahead"] else ""
    tries = data["failed_tries"]
    times = "a try" if tries == 1 else f"{tries} tries"
    return ahead + (f"; {times} of it failed, and the next is behind its host's other URLs" if tries else "")


def _host_text(data: dict[str, Any]) -> str:
    busy = f", {data['host_busy']} taken" if data["host_busy"] else ""
    due = data["host_due_in_s"]
    when = "" if due is None else ", may be asked now" if not due else f", may be asked in {due:,.1f} s"
    return f"{data['host_queued']:,} URLs queued in Redis{busy}{when}{_failures_text(data)}"


def _failures_text(data: dict[str, Any]) -> str:
    if data["host_state"] == "well":
        return ""
    failures = data["host_failures"]
    times = f"failed {failures:,} times in a row" if failures != 1 else "failed once"
    text = f"; {data['host_state']}: {times}, the last time by {data['host_failed_by']}, {data['host_failed']}"
    return text + ("; `scrapy frontier awaken` brings it back" if data["host_state"] == "retired" else "")


def _filter_rows(data: dict[str, Any]) -> dict[str, str]:
    rows = {}
    if data.get("in_scope") is False:
        rows["scope"] = "out of BIGCRAWL_SCOPE_LIST: links to it are not followed"
    elif data["where"] == "nowhere" and data["seen"] is False and data.get("scope") in _SCOPES:
        rows["scope"] = f"{data['scope']}: {_SCOPES[data['scope']]}"
    if data.get("dropped_by_filter"):
        rows["filter"] = f"{data['dropped_by_filter']} drops it: links to it are not followed"
    return rows
