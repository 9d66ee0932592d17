"""`scrapy frontier explain URL`: everything that the crawl knows about one URL.

It is read from Redis and from the partition's committed files, or from their newest point in the store. Nothing is
changed, and no page is fetched.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from bigcrawl.commands.looking.explanation import explanation_text
from bigcrawl.commands.looking.filters import filters_data
from bigcrawl.commands.looking.locate import find_hot, read_deaths, read_host, read_partition_view, trace_inbox
from bigcrawl.commands.looking.next_visit import find_next_visit, next_visit_data
from bigcrawl.commands.newest_files import files_to_read, is_looked_at, read_disk, said_of_files
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.blacklist import entries_of
from bigcrawl.commands.steering.budget import limits_of_url
from bigcrawl.commands.steering.discovery import discovery_data, read_discovery
from bigcrawl.exceptions import CorruptionError
from bigcrawl.politeness.robots_policy import RobotsRules, read_record
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.gates.dns_answers import SharedAnswers
from bigcrawl.scheduler.partition.reader import UNTOUCHED, find_waiting
from bigcrawl.scheduler.queues.unrunnable import PREFIX
from bigcrawl.scheduler.records.body import look_at_origin
from bigcrawl.scheduler.records.inbox_entry import id_order
from bigcrawl.scheduler.records.outcomes import AGAIN, read_outcome, rule_hash
from bigcrawl.scheduler.rules.blacklist import Blacklist
from bigcrawl.scheduler.rules.page_rules import rule_of
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.shape import Shapes, kinds_of
from bigcrawl.warc.reading import find_page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.commands.looking.locate import HostState, Hot, InboxTrace
    from bigcrawl.commands.newest_files import FilesToRead
    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.config import Config, TrapConfig
    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.scheduler.partition.reader import UrlOnDisk
    from bigcrawl.scheduler.records.dead_letters import DeadLetter
    from bigcrawl.scheduler.records.outcomes import Outcome
    from bigcrawl.scheduler.records.suspicion import Suspicion


class Found(NamedTuple):
    """Everything that was read about a URL."""

    place: Place
    view: PartitionView
    hot: Hot | None
    trace: InboxTrace
    disk: UrlOnDisk | None
    host: HostState
    suspicion: Suspicion | None = None
    letter: DeadLetter | None = None

    @property
    def last_end(self) -> Outcome | None:
        """Its outcome, merged or still in the inbox; None if it has none or will be forgotten."""
        ends = [(self.disk.inbox_id, self.disk.end)] if self.disk and self.disk.end is not None else []
        ends += [end for end in self.trace.ends if self._is_unmerged(end[0])]
        if not ends or self._is_forgotten_after(ends[-1][0]):
            return None
        return read_outcome(ends[-1][1])

    @property
    def is_seen(self) -> bool | None:
        """Whether its key is in URLSeen; None if the files are not here."""
        if self.disk is None:
            return None
        return self.disk.is_seen and not self._is_forgotten_after(self.disk.inbox_id)

    @property
    def is_offered(self) -> bool:
        """Whether an offer of it is not merged yet."""
        return any(self._is_unmerged(entry_id) for entry_id in self.trace.offers)

    def _is_unmerged(self, entry_id: str) -> bool:
        return self.disk is None or id_order(entry_id) > id_order(self.disk.inbox_id)

    def _is_forgotten_after(self, entry_id: str) -> bool:
        return any(id_order(forgotten) > id_order(entry_id) for forgotten in self.trace.forgets)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that reads WARC files."""
    text = "look for its page in the WARC files written since then; takes seconds per GiB"
    parser.add_argument("--find-page", action="store_true", help=text)


def explain(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show everything that the crawl knows about a URL.

    Raises:
        UrlError: the argument is not a URL.
        ConfigError: there is no such crawl.
        TransientStoreError: Redis or the store does not answer.
        CorruptionError: the partition's files are damaged.
    """
    with server_of(config) as url:
        data = asyncio.run(_explain(config, url, words[0]))
    if getattr(opts, "find_page", False):
        data["page"] = _page(config, data)
    return Result(data, explanation_text(data))


async def _explain(config: Config, server: str, url: str) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        place = crawl.place_of(url)
        with files_to_read(crawl, place.partition, is_looked_at if config.revisits.rule == "never" else None) as files:
            state = await look_up(crawl, place, files)
            visit = await find_next_visit(files.directory, place.key, state.hot, state.trace, state.disk)
            lacks = await asyncio.to_thread(_lacking, files.directory, place.key, state)
        said = {
            **said_of(state, crawl.partitions, config.traps),
            **said_of_files(files, has_any=state.disk is not None and state.disk is not UNTOUCHED),
        }
        if visit is not None and visit.waits and said["where"] == "ended":
            said["where"] = "revisit"
        if lacks:
            said["where"] = "unrunnable"
        blacklist = Blacklist(await entries_of(crawl), crawl.suffixes.pld)
        entry, address = blacklist.of_canonical(place.host, place.url), None
        if entry is None:
            addresses = await addresses_of(crawl, place.host)
            entry, address = next(((found, x) for x in addresses if (found := blacklist.of_address(x))), (None, None))
        return {
            **said,
            "lacks_method": lacks or None,
            "revisit": next_visit_data(visit, config.revisits.rule, crawl.client.now_ms()),
            "limits": await limits_of_url(crawl, place) if said["where"] == "withheld" else {},
            "blacklisted": entry,
            "blacklisted_address": address,
            "discovery": discovery_data(await read_discovery(crawl)),
            **await filters_data(crawl, place.url),
        }


def _lacking(directory: Path, key: int, found: Found) -> str:
    """Return the method for which a URL waits on disk; empty if it waits for none."""
    if where(found) not in ("disk", "withheld") or not found.view.count("unrunnable"):
        return ""
    waiting = find_waiting(directory, key, prefix=PREFIX)
    return waiting.for_method if waiting is not None else ""


async def addresses_of(crawl: OpenedCrawl, host: str) -> Sequence[str]:
    """Return the addresses of a host, if it is a literal or nodes have a valid DNS answer for it."""
    literal = host.strip("[]")
    cells = crawl.config.dns.shared_answers
    if not cells or literal.replace(".", "").isdigit() or ":" in literal:
        return (literal,)
    answers = SharedAnswers(crawl.client, CrawlKeys(crawl.config.crawl.name), cells)
    answer = await answers.get(host)
    await answers.close()
    return answer.addresses if answer is not None else ()


def _page(config: Config, data: dict[str, Any]) -> dict[str, Any] | None:
    """Locate the page of an answered URL in the WARC files, with the data of its records; None if not found."""
    outcome = data["outcome"]
    if config.crawl.warc_dir is None or outcome is None or not outcome["name"].startswith("status:"):
        return None
    ended_s = datetime.fromisoformat(outcome["time"]).timestamp()

    def is_wanted(url: str) -> bool:
        try:
            return data["host"] in url.lower() and canonicalize(url) == data["url"]
        except UrlError:
            return False

    page = find_page(config.crawl.warc_dir, is_wanted, ended_s)
    if page is None:
        return None
    return {
        "file": str(page.path),
        "offset": page.offset,
        "bytes": page.size,
        "fetched": page.date,
        "redirects_to": urljoin(data["url"], page.location) if page.location else None,
        "referrer": page.referrer or None,
    }


async def look_up(crawl: OpenedCrawl, place: Place, files: FilesToRead | None = None) -> Found:
    """Read everything that is known about a URL.

    Args:
        crawl: the crawl.
        place: where the URL belongs.
        files: of its partition; those of the state directory by default.

    Cost: some round trips, its inbox, and the few blocks of files that hold its key.
    """
    view = await read_partition_view(crawl, place.partition)
    hot = await find_hot(crawl, place)
    trace = await trace_inbox(crawl, place, view.state.get("folded", "0-0"))
    directory = crawl.directory(place.partition) if files is None else files.directory
    disk = await read_disk(crawl, place.partition, directory, place.key, place.pld_key)
    if files is not None and files.url and disk is not None:  # older than what was folded; the inbox has the rest
        trace = await trace_inbox(crawl, place, disk.inbox_id)
    suspicion, letter = await read_deaths(crawl, place, hot)
    return Found(place, view, hot, trace, disk, await read_host(crawl, place), suspicion, letter)


def said_of(found: Found, partitions: int, traps: TrapConfig) -> dict[str, Any]:
    """Return what is known about a URL, for programs; its shape by the caller's settings."""
    place, view, end = found.place, found.view, found.last_end
    depth, referrer = _origin(found)
    rules = _rules(found.host.rules)
    return {
        "url": place.url,
        "key": f"{place.key:016x}",
        "pld": place.pld,
        "host": place.host,
        "partition": place.partition,
        "partitions": partitions,
        "owner": view.node if view.node and view.lease_left_ms > 0 else None,
        "seen": found.is_seen,
        "outcome": _outcome(end, rules),
        "where": where(found),
        "ahead": found.hot.ahead if found.hot else None,
        "depth": depth,
        "referrer": referrer,
        "failed_tries": found.hot.attempts if found.hot else None,
        "deaths": _deaths(found),
        "is_dead_letter": found.letter is not None,
        "host_queued": found.host.queued,
        "host_busy": found.host.busy,
        "host_due_in_s": found.host.due_in_s(view.now_ms),
        "host_state": found.host.state(view.now_ms),
        "host_failures": found.host.failures,
        "host_failed_by": found.host.why or None,
        "host_failed": time_text(found.host.failed_ms) if found.host.failed_ms else None,
        "robots": None if rules is None else "allowed" if rules.is_allowed(place.url) else "forbidden",
        "pld_in_degree": found.disk.in_degree if found.disk else None,
        "turn": found.disk.turn if found.disk else None,
        "pld_turn": found.disk.pld_turn if found.disk else None,
        "pld_over_budget": found.disk.is_over_budget if found.disk else None,
        "shape": kinds_of(Shapes(traps).marks(place.url)) if traps.share else [],
        "trap": _trap(found.disk, traps),
        "mirror": _mirror(found.disk, traps),
        "inbox_is_whole": found.trace.is_whole,
        "rejected": view.count("rejected"),
    }


def _origin(found: Found) -> tuple[int | None, str | None]:
    """Return depth and referring page of a URL that waits in Redis or in its inbox."""
    body = found.hot.body if found.hot is not None else found.trace.body if found.is_offered else b""
    try:
        return look_at_origin(body) if body else (None, None)
    except ValueError:
        return None, None


def _deaths(found: Found) -> int:
    """Return at how many node deaths the URL was in process, while that is recorded."""
    if found.letter is not None:
        return found.letter.deaths
    return found.suspicion.deaths if found.suspicion is not None else 0


def _trap(disk: UrlOnDisk | None, traps: TrapConfig) -> dict[str, Any] | None:
    """Return the trap statistics of the URL's PLD, if it ever looked like a trap and traps are on."""
    if disk is None or disk.trap is None or not traps.share:
        return None
    return {**disk.trap._asdict(), "budget_divided_by": traps.divisor if disk.trap.is_caught else 1}


def _mirror(disk: UrlOnDisk | None, traps: TrapConfig) -> dict[str, Any] | None:
    """Return what the URL's PLD shares with greater PLDs, if it has samples and mirrors are looked for."""
    if disk is None or disk.mirror is None or not traps.mirror_share:
        return None
    divisor = traps.mirror_divisor if disk.mirror.is_mirror else 1
    return {**disk.mirror._asdict(), "other": f"{disk.mirror.other:016x}", "budget_divided_by": divisor}


def where(found: Found) -> str:
    """Return where the URL is: `taken`, `queued`, `inbox`, `disk`, `withheld`, `ended`, `nowhere`, or `unknown`."""
    end = found.last_end
    if found.hot is not None:
        return "taken" if found.hot.is_taken else "queued"
    if end is not None and end.name != AGAIN:
        return "ended"
    if found.is_offered and (end is not None or not found.is_seen):
        return "inbox"
    if found.is_seen is None:
        return "unknown"
    if not found.is_seen:
        return "nowhere"
    waits_for_nothing = found.view.count("waiting") <= found.view.count("revisits")
    return "withheld" if waits_for_nothing and found.view.count("withheld") else "disk"


def time_text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).isoformat(sep=" ").replace("+00:00", "Z")


def _outcome(end: Outcome | None, rules: RobotsRules | None) -> dict[str, Any] | None:
    if end is None:
        return None
    is_answered = end.name.startswith("status:")
    lines = rules.lines if rules is not None and end.detail else ()
    return {
        "name": end.name,
        "time": time_text(end.time_s * 1000),
        "rule": None if is_answered else next((x for x in lines if rule_hash(x) == end.detail), None),
        "filter": rule_of(end.detail) if is_answered else None,
    }


def _rules(stored: bytes | None) -> RobotsRules | None:
    try:
        return read_record(stored)[0] if stored else None
    except CorruptionError:
        return None
