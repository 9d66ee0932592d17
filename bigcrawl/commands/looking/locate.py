"""Locate a URL and its host in Redis, without changing anything.

While the search runs, a URL may move on from inbox to disk to back queue to taken to ended. The search goes through
these places in reverse, with the inbox last: a URL that left the queues meanwhile has its outcome in the inbox. The
result is the URL's state a moment ago.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.scheduler.records.dead_letters import DeadLetter, unpack_letter
from bigcrawl.scheduler.records.inbox_entry import BATCH, FORGOTTEN, OUTCOMES, REVISITS
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import OutcomesFormatError, check_outcomes, unpack_keys, unpack_outcomes
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_batch
from bigcrawl.scheduler.records.revisits import RevisitsFormatError, decode_revisits
from bigcrawl.scheduler.records.suspicion import Suspicion

if TYPE_CHECKING:
    from typing import Any

    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.scheduler.records.member import Member
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

QUEUE_URLS_MAX = 100_000  # of a back queue that are searched; far more than BIGCRAWL_HOST_HOT_URLS admits
INBOX_ENTRIES_MAX = 20_000  # of an inbox that are searched; minutes of input without an owner
_AT_ONCE = 500


class Hot(NamedTuple):
    """A URL that is hot: in a back queue, or taken.

    Attributes:
        is_taken: the partition's owner has taken it; otherwise it is in its host's back queue.
        ahead: URLs of the host in front of it.
        attempts: failed tries so far.
        seq: its sequence number in the partition.
        body, flags: the rest of its record.
    """

    is_taken: bool
    ahead: int
    attempts: int
    seq: int
    body: bytes = b""
    flags: int = 0


class HostState(NamedTuple):
    """A host's state in Redis.

    Attributes:
        queued: URLs in its back queue.
        busy: its URLs that are taken.
        next_ms: its next fetch time, server clock; 0: it was never fetched.
        rules: robots rules of the URL's authority, as stored in the host record; None: not in Redis.
        failures: consecutive failures of the host, whatever the URL.
        why: reason of the last failure.
        failed_ms: time of the last failure, server clock.
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
        """Whether it failed so often that it is no longer fetched."""
        return self.next_ms >= RETIRED_MS

    def state(self, now_ms: int) -> str:
        """Return `retired`, `snoozed` while it rests after a failure, `failing` once it is due again, else `well`."""
        if self.is_retired:
            return "retired"
        if not self.failures:
            return "well"
        return "snoozed" if self.next_ms > now_ms else "failing"

    def due_in_s(self, now_ms: int) -> float | None:
        """Return when it may be asked; None if that is not known, or never."""
        if not self.next_ms or self.is_retired:
            return None
        return max(0, self.next_ms - now_ms) / 1000


@dataclass
class InboxTrace:
    """What the unmerged part of an inbox holds about one URL.

    Attributes:
        offers: ids of the entries that offer it.
        ends: (entry id, value in the table `ends`) of its outcomes, in order.
        forgets: ids of the entries that forget it.
        is_whole: whether the whole inbox was searched.
        body: body of the URL in its last offer; empty: it was not offered.
        revisit: the URL as it is visited next; None if its end did not say so.
    """

    offers: list[str] = field(default_factory=list)
    ends: list[tuple[str, Any]] = field(default_factory=list)
    forgets: list[str] = field(default_factory=list)
    is_whole: bool = True
    body: bytes = b""
    revisit: QueuedUrl | None = None


async def read_partition_view(crawl: OpenedCrawl, partition: int) -> PartitionView:
    """Return the state of a partition."""
    [view] = await crawl.client.run([scripts.look_partition(crawl.keys(partition))])
    seen: PartitionView = view
    return seen


async def read_host(crawl: OpenedCrawl, place: Place) -> HostState:
    """Return the state of the URL's host."""
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


async def find_hot(crawl: OpenedCrawl, place: Place) -> Hot | None:
    """Find the URL among the taken URLs of its partition or in its host's back queue; None if it is in neither."""
    keys = crawl.keys(place.partition)
    for _, record in pairs_of(await crawl.client.command("HGETALL", keys.taken)):
        host, _, _, member = record.split(b"\n", 3)
        if host == place.host.encode() and (found := _member_of(member, place.key)) is not None:
            return Hot(True, 0, found.attempts, found.seq, found.body, found.flags)
    back = keys.back + place.host
    cursor, looked = b"0", 0
    while looked < QUEUE_URLS_MAX:
        [(cursor, flat)] = await crawl.client.commands([("ZSCAN", back, cursor, "COUNT", _AT_ONCE)])
        for member in flat[::2]:
            if (found := _member_of(member, place.key)) is not None:
                rank = await crawl.client.command("ZRANK", back, member)
                return Hot(False, int(rank or 0), found.attempts, found.seq, found.body, found.flags)
        looked += len(flat) // 2
        if int(cursor) == 0:
            break
    return None


async def read_deaths(crawl: OpenedCrawl, place: Place, hot: Hot | None) -> tuple[Suspicion | None, DeadLetter | None]:
    """Return the deaths recorded for the URL, and its dead letter if it has one."""
    keys = crawl.keys(place.partition)
    [letter] = await crawl.client.commands([("HGET", keys.dead, place.key)])
    deaths = await crawl.client.command("HGET", keys.deaths, hot.seq) if hot is not None else None
    return Suspicion.read(deaths) if deaths else None, unpack_letter(place.key, letter) if letter else None


async def trace_inbox(crawl: OpenedCrawl, place: Place, folded: str) -> InboxTrace:
    """Search the inbox for the URL, after the entry `folded`."""
    trace = InboxTrace()
    inbox, last, looked = crawl.keys(place.partition).inbox, folded, 0
    while looked < INBOX_ENTRIES_MAX:
        entries = await crawl.client.command("XRANGE", inbox, "(" + last, "+", "COUNT", _AT_ONCE)
        for raw_id, raw in entries:
            _note_entry(trace, raw_id.decode(), dict(pairs_of(raw)), place.key)
        if len(entries) < _AT_ONCE:
            return trace
        last = entries[-1][0].decode()
        looked += len(entries)
    trace.is_whole = False
    return trace


def _note_entry(trace: InboxTrace, entry_id: str, fields: dict[bytes, bytes], key: int) -> None:
    """Read one entry. Unreadable ones are skipped; the owner sets them aside."""
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
        revisits = fields.get(REVISITS)
        for revisit in decode_revisits(revisits) if revisits else ():
            if revisit.url.key == key:
                trace.revisit = revisit.url
    except (BatchFormatError, OutcomesFormatError, RevisitsFormatError):
        return


def _member_of(member: bytes, key: int) -> Member | None:
    """Unpack a member; None if it is not the URL with this key."""
    try:
        fields = unpack_member(member)
    except (ValueError, TypeError, BigcrawlError):
        return None
    return fields if fields.key == key else None
