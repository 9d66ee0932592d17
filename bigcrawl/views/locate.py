"""Locates a URL and its host in Redis, without changing anything.

While the search runs, a URL may move on: from inbox to disk, to its host's back queue, to taken, to ended. So the
search goes through these places in reverse. The inbox comes last, because it has the outcome of a URL that has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.scheduler.records.dead_letters import DeadLetter, unpack_letter
from bigcrawl.scheduler.records.inbox_entry import BATCH, FORGOTTEN, OUTCOMES, TIMED
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import OutcomesFormatError, check_outcomes, unpack_keys, unpack_outcomes
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_batch
from bigcrawl.scheduler.records.suspicion import Suspicion
from bigcrawl.scheduler.records.timed_url import NO_MORE_S, TimedFormatError, decode_timed

if TYPE_CHECKING:
    from typing import Any

    from bigcrawl.scheduler.records.member import Member
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace

QUEUE_URLS_MAX = 100_000  # URLs of a back queue that are searched; far above BIGCRAWL_HOST_HOT_URLS
INBOX_ENTRIES_MAX = 20_000  # inbox entries that are searched; without an owner, minutes of input
_AT_ONCE = 500


class HotUrl(NamedTuple):
    """A URL in Redis, in a back queue or taken; `ahead` counts the URLs of its host that come before it."""

    is_taken: bool
    ahead: int
    attempts: int
    seq: int
    body: bytes = b""
    flags: int = 0


class HostState(NamedTuple):
    """A host's state in Redis.

    Attributes:
        next_ms: its next fetch time by Redis's clock; 0 if it was never fetched.
        rules: the stored robots rules of the URL's authority; None if Redis has none.
        failures: the host's failures in a row, whatever the URL.
    """

    queued: int
    busy: int
    next_ms: int
    rules: bytes | None
    failures: int = 0
    why: str = ""
    failed_ms: int = 0

    @property
    def is_retired(self) -> bool:
        return self.next_ms >= RETIRED_MS

    def state(self, now_ms: int) -> str:
        if self.is_retired:
            return "retired"
        if not self.failures:
            return "well"
        return "snoozed" if self.next_ms > now_ms else "failing"

    def due_in_s(self, now_ms: int) -> float | None:
        """Return the time until the host may be fetched from again; None if that is unknown, or never."""
        if not self.next_ms or self.is_retired:
            return None
        return max(0, self.next_ms - now_ms) / 1000


@dataclass
class InboxTrace:
    """What unmerged inbox entries say about one URL.

    Attributes:
        offers, forgets: ids of the entries that offer or forget the URL.
        ends: its outcomes in order, each as (entry id, value in the table `ends`).
        is_whole: whether the whole inbox was searched.
        again: the URL with its next visit, if an outcome has one.
    """

    offers: list[str] = field(default_factory=list)
    ends: list[tuple[str, Any]] = field(default_factory=list)
    forgets: list[str] = field(default_factory=list)
    is_whole: bool = True
    body: bytes = b""
    again: QueuedUrl | None = None


async def read_host(crawl: OpenedCrawl, place: UrlPlace) -> HostState:
    keys = crawl.keys(place.partition)
    record = keys.host + place.host
    queued, busy, ready_ms, next_ms, rules, left_ms, health = await crawl.client.commands(
        [
            ("ZCARD", keys.back + place.host),
            ("HGET", keys.busy, place.host),
            ("ZSCORE", keys.ready, place.host),
            ("HGET", record, "next"),
            ("HGET", record, f"robots:{place.authority}"),
            ("PTTL", record),
            ("HMGET", record, "failures", "why", "failed"),
        ]
    )
    due_ms = max(int(float(ready_ms or 0)), int(float(next_ms or 0)))
    failures, why, failed_ms = health
    return HostState(
        int(queued),
        int(busy or 0),
        due_ms,
        rules if left_ms > 0 else None,
        int(failures or 0),
        (why or b"").decode(),
        int(failed_ms or 0),
    )


async def find_hot(crawl: OpenedCrawl, place: UrlPlace) -> HotUrl | None:
    keys = crawl.keys(place.partition)
    for _, record in pairs_of(await crawl.client.command("HGETALL", keys.taken)):
        host, _, _, member = record.split(b"\n", 3)
        if host == place.host.encode() and (found := _member_of(member, place.key)) is not None:
            return HotUrl(True, 0, found.attempts, found.seq, found.body, found.flags)
    back = keys.back + place.host
    cursor, looked = b"0", 0
    while looked < QUEUE_URLS_MAX:
        [(cursor, flat)] = await crawl.client.commands([("ZSCAN", back, cursor, "COUNT", _AT_ONCE)])
        for member in flat[::2]:
            if (found := _member_of(member, place.key)) is not None:
                rank = await crawl.client.command("ZRANK", back, member)
                return HotUrl(False, int(rank or 0), found.attempts, found.seq, found.body, found.flags)
        looked += len(flat) // 2
        if int(cursor) == 0:
            break
    return None


async def read_deaths(
    crawl: OpenedCrawl, place: UrlPlace, hot: HotUrl | None
) -> tuple[Suspicion | None, DeadLetter | None]:
    keys = crawl.keys(place.partition)
    [letter] = await crawl.client.commands([("HGET", keys.dead, place.key)])
    deaths = await crawl.client.command("HGET", keys.deaths, hot.seq) if hot is not None else None
    return Suspicion.read(deaths) if deaths else None, unpack_letter(place.key, letter) if letter else None


async def trace_inbox(crawl: OpenedCrawl, place: UrlPlace, folded: str) -> InboxTrace:
    trace = InboxTrace()
    inbox, last, looked = crawl.keys(place.partition).inbox, folded, 0
    while looked < INBOX_ENTRIES_MAX:
        entries = await crawl.client.command("XRANGE", inbox, "(" + last, "+", "COUNT", _AT_ONCE)
        for raw_id, raw in entries:
            _record_entry(trace, raw_id.decode(), dict(pairs_of(raw)), place.key)
        if len(entries) < _AT_ONCE:
            return trace
        last = entries[-1][0].decode()
        looked += len(entries)
    trace.is_whole = False
    return trace


def _record_entry(trace: InboxTrace, entry_id: str, fields: dict[bytes, bytes], key: int) -> None:
    try:
        if key in unpack_keys(fields.get(FORGOTTEN, b"")):
            trace.forgets.append(entry_id)
        check_outcomes(outcomes := fields.get(OUTCOMES, b""))
        keys, values = unpack_outcomes([(entry_id, outcomes)])
        trace.ends += [(entry_id, value) for value in values[keys == key]]
        batch = fields.get(BATCH)
        for url in decode_batch(batch) if batch else ():
            if url.key == key:
                trace.offers.append(entry_id)
                trace.body = url.body
        timed = fields.get(TIMED)
        for again in decode_timed(timed) if timed else ():
            if again.url.key == key and again.due_s != NO_MORE_S:
                trace.again = again.url
    except (BatchFormatError, OutcomesFormatError, TimedFormatError):
        return


def _member_of(member: bytes, key: int) -> Member | None:
    try:
        fields = unpack_member(member)
    except (ValueError, TypeError, BigcrawlError):
        return None
    return fields if fields.key == key else None
