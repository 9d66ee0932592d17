"""Everything that the crawl knows about one URL.

Its sources are Redis, and the partition's committed files or their newest point in the store. Filters are taken from
the caller's settings, but the scope from the live nodes, because a spider's argument may have set it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.clock import time_text
from bigcrawl.exceptions import CorruptionError
from bigcrawl.json_text import read_json
from bigcrawl.politeness.robots_policy import RobotsRules, read_record
from bigcrawl.redisdb.scripts import PartitionView, looking
from bigcrawl.scheduler.crawl.alike import FIELD
from bigcrawl.scheduler.crawl.node_reports import read_or_nothing
from bigcrawl.scheduler.gates.dns_answers import shared_addresses
from bigcrawl.scheduler.node.control import DISCOVERY, Discovery
from bigcrawl.scheduler.partition.reader import TRIES_MAX, UNTOUCHED, UrlOnDisk, find_waiting
from bigcrawl.scheduler.queues.unrunnable import PREFIX
from bigcrawl.scheduler.records.body import look_at_origin
from bigcrawl.scheduler.records.inbox_entry import id_order
from bigcrawl.scheduler.records.outcomes import AGAIN, Outcome, read_outcome, reason_of, rule_hash, rule_of
from bigcrawl.scheduler.rules.blacklist import Blacklist
from bigcrawl.scheduler.rules.link_rules import LinkRules
from bigcrawl.scheduler.rules.scope import LIST, CrawlScope, parse_names
from bigcrawl.url.header import url_in
from bigcrawl.views.budget import limits_of_url
from bigcrawl.views.feature import ExplainedUrl, FeatureView, UrlRecord, all_views
from bigcrawl.views.locate import HostState, HotUrl, InboxTrace, find_url, read_host
from bigcrawl.views.newest_files import FilesToRead, files_data, files_to_read, is_wanted_file, read_disk, read_view
from bigcrawl.views.orders import discovery_data, entries_with
from bigcrawl.warc.reading import find_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.at_gates import Suspicion
    from bigcrawl.scheduler.records.dead_letters import DeadLetter
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace


class FoundUrl(NamedTuple):
    place: UrlPlace
    view: PartitionView
    hot: HotUrl | None
    trace: InboxTrace
    disk: UrlOnDisk | None
    host: HostState
    suspicion: Suspicion | None = None
    letter: DeadLetter | None = None
    trimmed: str = "0-0"
    record: UrlRecord | None = None

    @property
    def last_end(self) -> Outcome | None:
        """The URL's last outcome; None if it has none, or if a later inbox entry forgets the URL."""
        ends = [(self.disk.inbox_id, self.disk.end)] if self.disk and self.disk.end is not None else []
        ends += [end for end in self.trace.ends if self._is_unmerged(end[0])]
        if not ends or self._is_forgotten_after(ends[-1][0]):
            return None
        return read_outcome(ends[-1][1])

    @property
    def is_seen(self) -> bool | None:
        """Whether the URL's key is in URLSeen; None if the partition's files are not here."""
        if self.disk is None:
            return None
        return self.disk.is_seen and not self._is_forgotten_after(self.disk.inbox_id)

    @property
    def is_offered(self) -> bool:
        return any(self._is_unmerged(entry_id) for entry_id in self.trace.offers)

    def _is_unmerged(self, entry_id: str) -> bool:
        return self.disk is None or id_order(entry_id) > id_order(self.disk.inbox_id)

    def _is_forgotten_after(self, entry_id: str) -> bool:
        return any(id_order(forgotten) > id_order(entry_id) for forgotten in self.trace.forgets)


async def explain_url(crawl: OpenedCrawl, url: str) -> dict[str, Any]:
    """Return everything that the crawl knows about a URL; raise UrlError if it is not a URL. Four Redis commands.

    One more if addresses are blacklisted; others if the files come from a store, or a queue or the inbox is long.
    """
    config = crawl.config
    place = crawl.place_of(url)
    wanted = None if any(view.reads_queues(config) for view in all_views()) else is_wanted_file
    for left in reversed(range(TRIES_MAX)):
        view = await read_view(crawl, place.partition)
        with files_to_read(crawl, place.partition, wanted) as files:
            state = await look_up(crawl, place, files, view)
            if left and state.disk is not None and id_order(state.trimmed) > id_order(state.disk.inbox_id):
                continue
            state = state._replace(record=await asyncio.to_thread(_waiting_record, files.directory, place.key, state))
            lacks = await asyncio.to_thread(_missing_method, files.directory, place.key, state)
            break
    said = {
        **url_data(state, crawl.partitions, config),
        **files_data(files, has_any=state.disk is not None and state.disk is not UNTOUCHED),
    }
    if lacks:
        said["where"] = "unrunnable"
    [orders] = await crawl.client.run([looking.look_orders(crawl.crawl_keys, DISCOVERY)])
    blacklist = Blacklist(entries_with(config, orders.blacklist), crawl.suffixes.pld)
    entry, address = blacklist.of_canonical(place.host, place.url), None
    if entry is None and blacklist.has_addresses:
        addresses = await addresses_of(crawl, place.host)
        entry, address = next(((found, x) for x in addresses if (found := blacklist.of_address(x))), (None, None))
    return {
        **said,
        "lacks_method": lacks or None,
        "limits": limits_of_url(crawl, place, orders.rules) if said["where"] == "withheld" else {},
        "blacklisted": entry,
        "blacklisted_address": address,
        "discovery": discovery_data(Discovery.from_field(orders.discovery or None)),
        **_filters_data(crawl, place.url, orders.reports),
    }


def _waiting_record(directory: Path, key: int, found: FoundUrl) -> UrlRecord | None:
    if found.hot is not None:
        return UrlRecord(found.hot.body, found.hot.flags)
    if (again := found.trace.again) is not None:
        return UrlRecord(again.body, again.flags, for_time=True)
    said = found.disk.said if found.disk is not None else {}
    if not any(view.wants_record and said.get(view.name) for view in all_views()):
        return None
    waiting = find_waiting(directory, key)
    return None if waiting is None else UrlRecord(waiting.url.body, waiting.url.flags, for_time=waiting.for_time)


def _missing_method(directory: Path, key: int, found: FoundUrl) -> str:
    if place_name(found) not in ("disk", "withheld") or not found.view.count("unrunnable"):
        return ""
    waiting = find_waiting(directory, key, prefix=PREFIX)
    return waiting.for_method if waiting is not None else ""


async def addresses_of(crawl: OpenedCrawl, host: str) -> Sequence[str]:
    """Return the host's addresses: itself if it is an address, or a valid DNS answer that nodes share."""
    literal = host.strip("[]")
    cells = crawl.config.dns.shared_answers
    if not cells or literal.replace(".", "").isdigit() or ":" in literal:
        return (literal,)
    return await shared_addresses(crawl.client, crawl.crawl_keys, cells, host)


def page_of(config: Config, data: dict[str, Any]) -> dict[str, Any] | None:
    """Find the page of an answered URL in the WARC files; return None if it is not found."""
    outcome = data["outcome"]
    if config.crawl.warc_dir is None or outcome is None or not outcome["name"].startswith("status:"):
        return None
    ended_s, url = datetime.fromisoformat(outcome["time"]).timestamp(), str(data["url"])

    def is_wanted(target: bytes) -> bool:
        return url_in([target], url) == url

    page = find_page(config.crawl.warc_dir, is_wanted, ended_s)
    if page is None:
        return None
    return {
        "file": str(page.path),
        "offset": page.offset,
        "bytes": page.size,
        "fetched": page.date,
        "redirects_to": url_in(page.locations, url),
        "referrer": page.referrer or None,
    }


async def look_up(
    crawl: OpenedCrawl, place: UrlPlace, files: FilesToRead | None = None, view: PartitionView | None = None
) -> FoundUrl:
    """Find a URL in Redis, then in the files of its partition."""
    view = view or await read_view(crawl, place.partition)
    found = await find_url(crawl, place)
    directory = crawl.directory(place.partition) if files is None else files.directory
    disk = read_disk(view, directory, place.key, place.pld_key)
    if files is not None and files.url and disk is not None:  # the inbox has the entries after the point
        found = await find_url(crawl, place, disk.inbox_id)
    host = await read_host(crawl, place)
    return FoundUrl(place, view, found.hot, found.trace, disk, host, found.suspicion, found.letter, found.trimmed)


def _explained_by(view: FeatureView, found: FoundUrl, config: Config) -> dict[str, Any]:
    said = found.disk.said.get(view.name) if found.disk is not None else None
    return view.explained(ExplainedUrl(found.place.url, said, config, found.view.now_ms, found.record))


def url_data(found: FoundUrl, partitions: int, config: Config) -> dict[str, Any]:
    place, view, end = found.place, found.view, found.last_end
    depth, referrer = _depth_and_referrer(found)
    rules = _rules_of_record(found.host.rules)
    return {
        "url": place.url,
        "key": f"{place.key:016x}",
        "pld": place.pld,
        "host": place.host,
        "partition": place.partition,
        "partitions": partitions,
        "owner": view.node if view.node and view.lease_left_ms > 0 else None,
        "seen": found.is_seen,
        "outcome": _outcome_data(end, rules),
        "where": place_name(found),
        "ahead": found.hot.ahead if found.hot else None,
        "depth": depth,
        "referrer": referrer,
        "failed_tries": found.hot.attempts if found.hot else None,
        "deaths": _death_count(found),
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
        **{name: value for view in all_views() for name, value in _explained_by(view, found, config).items()},
        "inbox_is_whole": found.trace.is_whole,
        "rejected": view.count("rejected"),
    }


def _depth_and_referrer(found: FoundUrl) -> tuple[int | None, str | None]:
    body = found.hot.body if found.hot is not None else found.trace.body if found.is_offered else b""
    try:
        return look_at_origin(body) if body else (None, None)
    except ValueError:
        return None, None


def _death_count(found: FoundUrl) -> int:
    if found.letter is not None:
        return found.letter.deaths
    return found.suspicion.deaths if found.suspicion is not None else 0


def place_name(found: FoundUrl) -> str:
    """Return a URL's place: taken, queued, inbox, disk, withheld, ended, revisit, nowhere or unknown."""
    end = found.last_end
    if found.hot is not None:
        return "taken" if found.hot.is_taken else "queued"
    if end is not None and end.name != AGAIN:
        return "revisit" if found.record is not None and found.record.for_time else "ended"
    if found.is_offered and (end is not None or not found.is_seen):
        return "inbox"
    if found.is_seen is None:
        return "unknown"
    if not found.is_seen:
        return "nowhere"
    waits_for_nothing = found.view.count("waiting") <= found.view.count("revisits")
    return "withheld" if waits_for_nothing and found.view.count("withheld") else "disk"


def _outcome_data(end: Outcome | None, rules: RobotsRules | None) -> dict[str, Any] | None:
    if end is None:
        return None
    is_answered = end.name.startswith("status:")
    lines = rules.lines if rules is not None and end.detail else ()
    return {
        "name": end.name,
        "time": time_text(end.time_s * 1000),
        "rule": None if is_answered else next((x for x in lines if rule_hash(x) == end.detail), None),
        "filter": rule_of(end.detail) if is_answered else None,
        "limit": reason_of(end.detail) if end.name != "dropped:forbidden" else None,
    }


def _rules_of_record(stored: bytes | None) -> RobotsRules | None:
    try:
        return read_record(stored)[0] if stored else None
    except CorruptionError:
        return None


def _filters_data(crawl: OpenedCrawl, url: str, reports: Sequence[bytes]) -> dict[str, Any]:
    filters = crawl.config.filters
    scope = _scope_of_nodes(reports) or filters.scope
    is_in = None
    if scope == LIST and filters.scope_list:
        is_in = CrawlScope(LIST, parse_names(filters.scope_list), crawl.suffixes.pld).leads_from()(url)
    return {"scope": scope, "in_scope": is_in, "dropped_by_filter": LinkRules(filters).dropping_rule(url) or None}


def _scope_of_nodes(reports: Sequence[bytes]) -> str | None:
    """Return the scope that a node reports; None if none does, so that the default applies."""
    for text in reports:
        reported = read_or_nothing(text).get(FIELD, {}).get("BIGCRAWL_SCOPE")
        if isinstance(reported, str):
            with suppress(ValueError):
                return str(read_json(reported))
    return None
