"""Where a URL waits in Redis, and how its host stands there: read, never changed.

A URL moves on while it is looked for, from inbox to disk to back queue to taken to ended. It is looked for against
that order, the inbox last, because what has left the queues since has its outcome there; whoever asks sees the
URL as it stood a moment ago.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.scheduler.records.dead_letters import DeadLetter, unpack_letter
from bigcrawl.scheduler.records.inbox_entry import BATCH, FORGOTTEN, OUTCOMES
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import OutcomesFormatError, check_outcomes, unpack_keys, unpack_outcomes
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_batch
from bigcrawl.scheduler.records.suspicion import Suspicion

if TYPE_CHECKING:
    from typing import Any

    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.scheduler.records.member import Member

QUEUE_URLS_MAX = 100_000  # of a back queue that are looked through: far more than BIGCRAWL_HOST_HOT_URLS lets in
INBOX_ENTRIES_MAX = 20_000  # of an inbox: what gathers in minutes without an owner
_AT_ONCE = 500


class Hot(NamedTuple):
    """A URL in Redis beyond its inbox.

    Attributes:
        is_taken: by the partition's owner; else it is in its host's back queue.
        ahead: URLs of the host that come before it.
        attempts: tries that failed so far.
        seq: its sequence number in the partition.
        body: what else is known of it.
    """

    is_taken: bool
    ahead: int
    attempts: int
    seq: int
    body: bytes = b""


class HostStanding(NamedTuple):
    """A host in Redis.

    Attributes:
        queued: URLs in its back queue.
        busy: URLs of it that are taken.
        next_ms: from when it may be asked, server clock; 0: it never was.
        rules: the field of the host record with the robots rules of the URL's authority; None when Redis has none.
        failures: of the host in a row, whichever URL it was.
        why: the last of them.
        failed_ms: when that was, server clock.
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
        """Whether it has failed so often that it is asked no more."""
        return self.next_ms >= RETIRED_MS


@dataclass
class InboxTrace:
    """What an inbox says of one URL behind the last entry that was merged.

    Attributes:
        offers: how often it was offered.
        ends: (entry id, value of the table `ends`) of its outcomes, in order.
        forgets: ids of the entries that want it forgotten.
        is_whole: whether all of the inbox was looked through.
        body: what else is known of the URL, of its last offer; empty: it was not offered.
    """

    offers: list[str] = field(default_factory=list)
    ends: list[tuple[str, Any]] = field(default_factory=list)
    forgets: list[str] = field(default_factory=list)
    is_whole: bool = True
    body: bytes = b""


async def look_at_partition(crawl: OpenedCrawl, place: Place) -> PartitionView:
    """How the URL's partition stands."""
    [view] = await crawl.client.run([scripts.look_partition(crawl.keys(place.partition))])
    seen: PartitionView = view
    return seen


async def look_at_host(crawl: OpenedCrawl, place: Place) -> HostStanding:
    """How the URL's host stands."""
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
    return HostStanding(
        int(queued),
        int(busy or 0),
        due_ms,
        rules if left_ms > 0 else None,
        int(failures or 0),
        (why or b"").decode(),
        int(failed_ms or 0),
    )


async def find_hot(crawl: OpenedCrawl, place: Place) -> Hot | None:
    """The URL among those taken of its partition, or in its host's back queue; None when it is in neither."""
    keys = crawl.keys(place.partition)
    for _, record in pairs_of(await crawl.client.command("HGETALL", keys.taken)):
        host, _, _, member = record.split(b"\n", 3)
        if host == place.host.encode() and (found := _member_of(member, place.key)) is not None:
            return Hot(True, 0, found.attempts, found.seq, found.body)
    back = keys.back + place.host
    cursor, looked = b"0", 0
    while looked < QUEUE_URLS_MAX:
        [(cursor, flat)] = await crawl.client.commands([("ZSCAN", back, cursor, "COUNT", _AT_ONCE)])
        for member in flat[::2]:
            if (found := _member_of(member, place.key)) is not None:
                rank = await crawl.client.command("ZRANK", back, member)
                return Hot(False, int(rank or 0), found.attempts, found.seq, found.body)
        looked += len(flat) // 2
        if int(cursor) == 0:
            break
    return None


async def look_at_deaths(
    crawl: OpenedCrawl, place: Place, hot: Hot | None
) -> tuple[Suspicion | None, DeadLetter | None]:
    """What is known of deaths at which the URL was in process, and its letter if it is a dead one."""
    keys = crawl.keys(place.partition)
    [letter] = await crawl.client.commands([("HGET", keys.dead, place.key)])
    deaths = await crawl.client.command("HGET", keys.deaths, hot.seq) if hot is not None else None
    return Suspicion.read(deaths) if deaths else None, unpack_letter(place.key, letter) if letter else None


async def trace_inbox(crawl: OpenedCrawl, place: Place, folded: str) -> InboxTrace:
    """What the inbox says of the URL behind the entry `folded`."""
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
    """Read one entry; what cannot be read is the owner's to set aside."""
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
    except (BatchFormatError, OutcomesFormatError):
        return


def _member_of(member: bytes, key: int) -> Member | None:
    """A member read, if it is the URL of that key."""
    try:
        fields = unpack_member(member)
    except (ValueError, TypeError, BigcrawlError):
        return None
    return fields if fields.key == key else None
