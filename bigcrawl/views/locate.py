"""Locates a URL and its host in Redis, without changing anything.

One script looks at all places of a URL at the same moment. A back queue that is too long for one call is searched by
several; then the last call says what the inbox has, because it has the outcome of a URL that has ended meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.scripts import RETIRED_MS, looking
from bigcrawl.scheduler.records.at_gates import Suspicion
from bigcrawl.scheduler.records.dead_letters import DeadLetter, unpack_letter
from bigcrawl.scheduler.records.inbox_entry import BATCH, FORGOTTEN, OUTCOMES, TIMED
from bigcrawl.scheduler.records.member import beginning_of, unpack_member
from bigcrawl.scheduler.records.outcomes import OutcomesFormatError, check_outcomes, unpack_keys, unpack_outcomes
from bigcrawl.scheduler.records.queued_url import (
    NO_MORE_S,
    BatchFormatError,
    QueuedUrl,
    TimedFormatError,
    decode_batch,
    decode_timed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.scripts.looking import HostView, UrlView
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace

QUEUE_URLS_MAX = 100_000  # URLs of a back queue that are searched; far above BIGCRAWL_HOST_HOT_URLS
INBOX_ENTRIES_MAX = 20_000  # inbox entries that are searched; without an owner, minutes of input
_URLS_AT_ONCE = 5_000  # about a millisecond of Redis
_ENTRIES_AT_ONCE = 200


class HotUrl(NamedTuple):
    """A URL in Redis, in a back queue or taken; `ahead` counts the URLs of its host that come before it."""

    is_taken: bool
    ahead: int
    attempts: int
    body: bytes = b""
    flags: int = 0


class HostState(NamedTuple):
    """A host's state in Redis.

    Attributes:
        next_ms: its next fetch time by Redis's clock; 0 if it was never fetched.
        rules: the stored robots rules of the URL's authority; None if Redis has none.
        failures: the host's failures in a row, whatever the URL.
        seen: all that was read, with the URLs that are next if they were asked for.
    """

    queued: int
    busy: int
    next_ms: int
    rules: bytes | None
    failures: int = 0
    why: str = ""
    failed_ms: int = 0
    seen: HostView | None = None

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
    """The information about one URL in unmerged inbox entries.

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


async def read_host(crawl: OpenedCrawl, place: UrlPlace, urls_max: int = 0) -> HostState:
    call = looking.look_host(crawl.keys(place.partition), place.host, urls_max)
    [seen] = await crawl.client.run([call])
    record: Mapping[bytes, bytes] = seen.record
    return HostState(
        seen.queued,
        seen.taken,
        int(max(seen.ready_ms, float(record.get(b"next", 0)))),
        record.get(b"robots:%b" % place.authority.encode()) if seen.left_ms > 0 else None,
        int(record.get(b"failures", 0)),
        record.get(b"why", b"").decode(),
        int(record.get(b"failed", 0)),
        seen,
    )


class SoughtUrl(NamedTuple):
    """A URL's data in Redis; `trimmed` is the last inbox id that may have been trimmed."""

    hot: HotUrl | None
    suspicion: Suspicion | None
    letter: DeadLetter | None
    trace: InboxTrace
    trimmed: str


async def find_url(crawl: OpenedCrawl, place: UrlPlace, merged: str = "") -> SoughtUrl:
    """Look for a URL in Redis, and in inbox entries after the id `merged`; "" means the last merged one."""
    keys = crawl.keys(place.partition)
    sought = looking.UrlSought(place.host, place.key, beginning_of(place.key))
    urls_from: str | None = "-inf"
    for _ in range(QUEUE_URLS_MAX // _URLS_AT_ONCE):
        assert urls_from is not None
        call = looking.look_url(keys, sought, urls_from, _URLS_AT_ONCE, merged, _ENTRIES_AT_ONCE)
        [seen] = await crawl.client.run([call])
        urls_from = seen.goes_on
        if urls_from is None:
            break
    letter = unpack_letter(place.key, seen.letter) if seen.letter else None
    suspicion = Suspicion.read(seen.deaths) if seen.deaths else None
    return SoughtUrl(_hot_url(seen), suspicion, letter, await _trace(crawl, place, seen.entries), seen.trimmed)


def _hot_url(seen: UrlView) -> HotUrl | None:
    if not seen.member:
        return None
    try:
        found = unpack_member(seen.member)
    except (ValueError, TypeError, BigcrawlError):
        return None
    return HotUrl(seen.ahead < 0, max(0, seen.ahead), found.attempts, found.body, found.flags)


async def _trace(crawl: OpenedCrawl, place: UrlPlace, entries: Sequence[Any]) -> InboxTrace:
    trace, looked, inbox = InboxTrace(), 0, crawl.keys(place.partition).inbox
    while entries:
        for raw_id, raw in entries:
            _record_entry(trace, raw_id.decode(), dict(pairs_of(raw)), place.key)
        looked += len(entries)
        if len(entries) < _ENTRIES_AT_ONCE:
            break
        if looked >= INBOX_ENTRIES_MAX:
            return replace(trace, is_whole=False)
        after = "(" + entries[-1][0].decode()
        entries = await crawl.client.command("XRANGE", inbox, after, "+", "COUNT", _ENTRIES_AT_ONCE)
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
