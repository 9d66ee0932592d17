"""Lists the hosts that Redis knows, by state, in pages.

The first hosts in order of due times come from one script for many partitions, which reads few hosts besides those that
are shown. Any other order, or a pattern, needs a walk through all hosts, up to `WALKED_MAX`, in steps that block Redis
for less than a millisecond each. Hosts whose URLs all wait on disk are not listed.
"""

from __future__ import annotations

import fnmatch
import heapq
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.redisdb.replies import scores_of
from bigcrawl.redisdb.scripts import RETIRED_MS, looking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from bigcrawl.redisdb.scripts.looking import HostRow
    from bigcrawl.views.opened_crawl import OpenedCrawl

STATES: Final = ("ready", "waiting", "busy", "snoozed", "retired")
ORDERS: Final = ("due", "waiting", "failures", "rate")
WALKED_MAX: Final = 1_000_000
AT_ONCE: Final = 500
TOGETHER: Final = 64
LISTED_MAX: Final = 1_100
"""Hosts that one script lists."""

LOOKED_MAX: Final = 5_000
"""Hosts that one script looks at, for some milliseconds of Redis."""

PARTITIONS_AT_ONCE: Final = 512
NEVER_MS: Final = 10 * RETIRED_MS


class ListedHost(NamedTuple):
    """A host that was found in Redis; `due_ms` is 0 if it is busy, and at least `RETIRED_MS` if it is retired."""

    due_ms: float
    host: str
    partition: int
    state: str


class HostQuery(NamedTuple):
    name: str  # a host or a PLD, or a pattern with * and ?; empty for all
    state: str
    order: str
    first: int
    limit: int

    @property
    def last_row(self) -> int:
        return self.first + self.limit

    @property
    def is_pattern(self) -> bool:
        return any(sign in self.name for sign in "*?[")

    def matches(self, listed: ListedHost) -> bool:
        if self.state not in ("", listed.state):
            return False
        if self.is_pattern:
            return fnmatch.fnmatchcase(listed.host, self.name)
        return not self.name or f".{listed.host}".endswith(f".{self.name}")


async def list_hosts(crawl: OpenedCrawl, wanted: HostQuery, walked_max: int = 0) -> dict[str, Any]:
    if wanted.order == "due" and not wanted.is_pattern and wanted.last_row <= LISTED_MAX:
        found = await first_hosts(crawl, wanted)
        if found["is_whole"] or not wanted.name:
            return {**found, "hosts": found["hosts"][wanted.first :]}
    walked_max = walked_max or WALKED_MAX
    walked, best = 0, list[tuple[float, ListedHost]]()
    async for met in _read_hosts(crawl, wanted):
        walked += len(met)
        fitting = [listed for listed in met if wanted.matches(listed)]
        ranks = await _sort_keys(crawl, fitting, wanted.order)
        best = heapq.nsmallest(wanted.last_row, [*best, *zip(ranks, fitting, strict=True)])
        if walked >= walked_max:
            break
    chosen = [listed for _, listed in best[wanted.first :]]
    return {"hosts": await _host_rows(crawl, chosen), "is_whole": walked < walked_max}


async def first_hosts(crawl: OpenedCrawl, wanted: HostQuery) -> dict[str, Any]:
    """Return the hosts due first, up to the last row; incomplete if too many others had to be examined."""
    keys = [crawl.keys(number) for number in _partitions_of(crawl, wanted)]
    is_cluster = await crawl.client.is_cluster()
    at_once = 1 if is_cluster else PARTITIONS_AT_ONCE
    calls = [
        looking.list_hosts(keys[at : at + at_once], wanted.state, wanted.name, wanted.last_row, LOOKED_MAX)
        for at in range(0, len(keys), at_once)
    ]
    found: list[HostRow] = []
    is_whole, now_ms = True, crawl.client.now_ms()
    for some in [calls] if is_cluster else [[call] for call in calls]:  # one server serves others in between
        for part in await crawl.client.run(some):
            found, is_whole, now_ms = found + part.rows, is_whole and part.is_whole, part.now_ms
    least_ms = crawl.config.politeness.host_delay_ms
    first = heapq.nsmallest(wanted.last_row, found, key=lambda row: (row.due_ms, row.host))
    return {"hosts": [_row_data(row, now_ms, least_ms) for row in first], "is_whole": is_whole}


def _partitions_of(crawl: OpenedCrawl, wanted: HostQuery) -> range:
    if not wanted.name or wanted.is_pattern:
        return range(crawl.partitions)
    partition = crawl.place_of(f"http://{wanted.name}/").partition
    return range(partition, partition + 1)


async def _read_hosts(crawl: OpenedCrawl, wanted: HostQuery) -> AsyncIterator[list[ListedHost]]:
    """Yield hosts in batches. A host whose state changes meanwhile may appear twice, or not at all."""
    partitions = _partitions_of(crawl, wanted)
    for start in range(0, len(partitions), TOGETHER):
        some = partitions[start : start + TOGETHER]
        busy = await crawl.client.commands([("HKEYS", crawl.keys(number).busy) for number in some])
        names = {host.decode(): number for number, found in zip(some, busy, strict=True) for host in found}
        yield [ListedHost(0, host, number, "busy") for host, number in names.items()]
        if wanted.state != "busy":
            async for met in _walk_heaps(crawl, wanted, some):
                yield [listed for listed in met if listed.host not in names]


async def _walk_heaps(
    crawl: OpenedCrawl, wanted: HostQuery, partitions: Iterable[int]
) -> AsyncIterator[list[ListedHost]]:
    now_ms = crawl.client.now_ms()
    is_plain = wanted.order == "due" and not wanted.name
    at_once = min(AT_ONCE, wanted.last_row) if is_plain else AT_ONCE
    for heap, low_ms, high_ms in _heap_ranges(wanted.state, now_ms):
        left, start = list(partitions), 0
        while left:
            rows = [
                ("ZRANGE", getattr(crawl.keys(n), heap), low_ms, high_ms, "BYSCORE", "LIMIT", start, at_once)
                for n in left
            ]
            replies = await crawl.client.commands([(*row, "WITHSCORES") for row in rows])
            found = {n: scores_of(reply) for n, reply in zip(left, replies, strict=True)}
            yield await _with_states(crawl, heap, found, now_ms)
            start += at_once
            # The heap is in due order, so the first hosts of each partition suffice.
            left = [n for n in left if len(found[n]) == at_once and not (is_plain and start >= wanted.last_row)]


def _heap_ranges(state: str, now_ms: int) -> list[tuple[str, int, int]]:
    ready, snoozed = ("ready", 0, NEVER_MS), ("snoozed", now_ms + 1, NEVER_MS)
    return {
        "ready": [("ready", 0, now_ms)],
        "waiting": [("ready", now_ms + 1, NEVER_MS)],
        "snoozed": [("snoozed", now_ms + 1, RETIRED_MS - 1)],
        "retired": [("snoozed", RETIRED_MS, NEVER_MS)],
    }.get(state, [ready, snoozed])


async def _with_states(
    crawl: OpenedCrawl, heap: str, found: Mapping[int, Sequence[tuple[str, float]]], now_ms: int
) -> list[ListedHost]:
    """Return hosts of a heap with their states. A snoozed host is in two heaps; only `snoozed` counts."""
    flat = [(due_ms, host, number) for number, hosts_there in found.items() for host, due_ms in hosts_there]
    if heap == "snoozed":
        return [ListedHost(*each, "retired" if each[0] >= RETIRED_MS else "snoozed") for each in flat]
    asked = [("ZSCORE", crawl.keys(number).snoozed, host) for _, host, number in flat]
    untils_ms = [float(reply or 0) for reply in await crawl.client.commands(asked)]
    rows = zip(flat, untils_ms, strict=True)
    return [ListedHost(*each, "ready" if each[0] <= now_ms else "waiting") for each, until in rows if until <= now_ms]


async def _sort_keys(crawl: OpenedCrawl, found: Sequence[ListedHost], order: str) -> list[float]:
    if order == "due":
        return [listed.due_ms for listed in found]
    asked: dict[str, Callable[[ListedHost], tuple[str, ...]]] = {
        "waiting": lambda listed: ("ZCARD", crawl.keys(listed.partition).back + listed.host),
        "failures": lambda listed: ("HGET", crawl.keys(listed.partition).host + listed.host, "failures"),
        "rate": lambda listed: ("HGET", crawl.keys(listed.partition).host + listed.host, "delay"),
    }
    replies = await crawl.client.commands([asked[order](listed) for listed in found])
    sign = 1 if order == "rate" else -1
    return [sign * float(reply or 0) for reply in replies]


async def _host_rows(crawl: OpenedCrawl, chosen: Sequence[ListedHost]) -> list[dict[str, Any]]:
    now_ms, least_ms = crawl.client.now_ms(), crawl.config.politeness.host_delay_ms
    asked: list[tuple[str, ...]] = []
    for listed in chosen:
        keys = crawl.keys(listed.partition)
        asked.append(("ZCARD", keys.back + listed.host))
        asked.append(("HGET", keys.busy, listed.host))
        asked.append(("HMGET", keys.host + listed.host, "delay", "failures", "why"))
    replies = iter(await crawl.client.commands(asked))
    rows = []
    for listed, queued, taken, (delay_ms, failures, why) in zip(chosen, replies, replies, replies, strict=True):
        numbers = int(queued), int(taken or 0), int(float(delay_ms or 0)), int(failures or 0)
        row = looking.HostRow(listed.host, listed.state, int(listed.due_ms), *numbers, (why or b"").decode())
        rows.append(_row_data(row, now_ms, least_ms))
    return rows


def _row_data(row: HostRow, now_ms: int, least_ms: int) -> dict[str, Any]:
    has_time = 0 < row.due_ms < RETIRED_MS
    return {
        "host": row.host,
        "state": row.state,
        "due_in_s": round(max(0, row.due_ms - now_ms) / 1000, 1) if has_time else None,
        "queued": row.queued,
        "taken": row.taken,
        "rest_s": max(least_ms, row.delay_ms) / 1000,
        "failures": row.failures,
        "why": row.why if row.failures else "",
    }
