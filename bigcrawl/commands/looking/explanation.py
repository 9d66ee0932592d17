"""What `scrapy frontier explain` says of a URL, as text. `explain.said_of` has the data."""

from __future__ import annotations

from typing import Any

from bigcrawl.commands.looking.filters import filter_rows
from bigcrawl.commands.looking.next_visit import next_visit_rows
from bigcrawl.commands.newest_files import REMEDY
from bigcrawl.commands.steering.budget import limits_text
from bigcrawl.commands.steering.discovery import discovery_text
from bigcrawl.scheduler.budgets.mirrors import MirrorVerdict, mirror_verdict_text
from bigcrawl.scheduler.budgets.traps import TrapVerdict, trap_verdict_text
from bigcrawl.scheduler.rules.callbacks import DAMAGED

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
    "unknown": "not in Redis; the partition's files are not here, so nothing else can be told",
}


def where_text(state: str) -> str:
    """Describe a result of `where`."""
    return _WHERE[state]


def explanation_text(data: dict[str, Any]) -> str:
    """Return the explanation as text."""
    rows = {
        "key": f"{data['key']}, in partition {data['partition']} of {data['partitions']}, {_owner(data)}",
        "host": f"{data['host']}, of {data['pld']}{_in_degree(data)}",
        "seen": {True: "yes", False: "no", None: f"unknown: the partition's files are not here; {REMEDY}"}[
            data["seen"]
        ],
        "outcome": _outcome_text(data) + _page_hint(data),
        "where": where_text(data["where"]) + _more_of_where(data),
        "its host": _host_text(data),
        "robots": {None: "its rules are not in Redis"}.get(data["robots"], data["robots"]),
    }
    rows |= next_visit_rows(data["revisit"])
    if data["depth"] is not None:
        rows["depth"] = f"{data['depth']} links from a start URL"
    if data["referrer"]:
        rows["referrer"] = data["referrer"]
    if "page" in data:
        rows |= _page_rows(data["page"])
    if data["deaths"]:
        rows["deaths"] = _deaths_text(data)
    if data["shape"] or data["trap"]:
        rows["trap"] = _trap_text(data)
    if data["mirror"] and data["mirror"]["shared"]:
        rows["mirror"] = _mirror_text(data["mirror"])
    if data.get("blacklisted"):
        address = f", which has its address {data['blacklisted_address']}" if data["blacklisted_address"] else ""
        rows["blacklist"] = f"covers it, by the entry {data['blacklisted']}{address}: it is kept and not fetched"
    rows |= filter_rows(data)
    if data["where"] == "nowhere" and data["seen"] is False and data["discovery"]["off_from"]:
        rows["discovery"] = discovery_text(data["discovery"])
    if data["files"]["store"]:
        rows["files"] = f"the newest point in {data['files']['store']} was read"
    if not data["inbox_is_whole"]:
        rows["but"] = "the inbox is too long to look through: the URL may be in the rest of it"
    if data["rejected"] and not data["seen"]:
        rows["rejected"] = f"{data['rejected']:,} inbox entries of its partition could not be read: it may be in one"
    return "\n".join([data["url"], *(f"  {name:<10}{text}" for name, text in rows.items())])


def _page_rows(page: dict[str, Any] | None) -> dict[str, str]:
    if page is None:
        return {"page": "in none of the files of BIGCRAWL_WARC_DIR that were written to since it ended"}
    rows = {"page": f"{page['file']}, {page['bytes']:,} bytes from byte {page['offset']:,}, fetched {page['fetched']}"}
    named = {"leads to": page["redirects_to"], "referrer": page["referrer"]}
    return rows | {name: url for name, url in named.items() if url}


def _owner(data: dict[str, Any]) -> str:
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
    return f"{outcome['name']}, {outcome['time']}{rule}{dropped}"


def _page_hint(data: dict[str, Any]) -> str:
    is_answered = data["outcome"] is not None and data["outcome"]["name"].startswith("status:")
    return "; --find-page looks for its page" if is_answered and "page" not in data else ""


def _deaths_text(data: dict[str, Any]) -> str:
    times = "a death" if data["deaths"] == 1 else f"{data['deaths']:,} deaths"
    if data["is_dead_letter"]:
        return f"it was in process at {times} of nodes, and is a dead letter; `scrapy frontier dead --retry` queues it"
    return f"it was in process at {times} of nodes, and is tried again with few others or alone"


def _more_of_where(data: dict[str, Any]) -> str:
    if limits := limits_text(data.get("limits", {})):
        return f"; its limits are {limits}, see `scrapy frontier budget`"
    if data["where"] in ("disk", "withheld"):
        return _turn_text(data)
    if data["where"] != "unrunnable":
        return _place_in_queue(data)
    if data["lacks_method"] == DAMAGED:
        return ": it could not be decoded; each start tries it again, and BIGCRAWL_CALLBACKS may drop it"
    return f": the spider had no method {data['lacks_method']}; a start with one, or with BIGCRAWL_CALLBACKS, goes on"


def _turn_text(data: dict[str, Any]) -> str:
    """Describe how far its PLD has come, which is known without reading the queues."""
    if data["pld_over_budget"]:
        return "; its PLD has more URLs than its budget lets go for now"
    if data["pld_turn"] is None or data["pld_turn"] < data["turn"]:
        return ""
    return f"; the last URL of its PLD goes in turn {data['pld_turn']:,}, and this is turn {data['turn']:,}"


def _trap_text(data: dict[str, Any]) -> str:
    """Describe the URL's shape, and whether its PLD is taken for a trap."""
    shape = f"it looks like one's itself: {', '.join(data['shape'])}; " if data["shape"] else ""
    trap = data["trap"]
    if trap is None or not (trap["urls"] or trap["is_caught"]):
        return f"{shape}its PLD is not taken for one"
    said = trap_verdict_text(TrapVerdict(**{name: trap[name] for name in TrapVerdict._fields}))
    if not trap["is_caught"]:
        return f"{shape}its PLD is not taken for one: {said}"
    return f"{shape}its PLD is taken for one and has its budget divided by {trap['budget_divided_by']}: {said}"


def _mirror_text(mirror: dict[str, Any]) -> str:
    """Describe what the URL's PLD shares with greater ones, and whether it is taken for a mirror."""
    verdict = MirrorVerdict(mirror["is_mirror"], mirror["shared"], mirror["weighed"], int(mirror["other"], 16))
    divided = f" and has its budget divided by {mirror['budget_divided_by']}" if verdict.is_mirror else ""
    is_one = "taken" if verdict.is_mirror else "not taken"
    return f"its PLD is {is_one} for one{divided}: {mirror_verdict_text(verdict)}"


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
