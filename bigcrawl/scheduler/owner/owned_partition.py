"""One partition as its owner drives it (steps 4 to 8): inbox in, numbered admit batches out.

The fold itself, `Partition`, does no Redis; this class carries bytes between it and the scripts. One step:

    read inbox -> [worker thread] fold, choose, write manifest = commit -> admit batch -> publish counts

A crash after the commit and before the admission is healed at opening: retained batches are offered again,
and Redis takes each number once. So is a Redis that has forgotten what it admitted of late: `retention`.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import pairs_of, scores_of
from bigcrawl.scheduler.owner.moved_urls import MovedUrls
from bigcrawl.scheduler.owner.retention import Retention
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX
from bigcrawl.scheduler.records.inbox_entry import FIELDS, OUTCOMES, InboxEntry, id_order
from bigcrawl.scheduler.records.member import order_of, pack_member
from bigcrawl.scheduler.records.queued_url import UNCHECKED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Claim, Identity, Reconciled, Value
    from bigcrawl.scheduler.owner.due_heap import DueLine
    from bigcrawl.scheduler.partition.partition import AdmitBatch, Partition, Step
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.records.suspicion import Suspicion


logger = logging.getLogger(__name__)

FORGET_AT_ONCE = 10_000  # keys; 80 KB in one call
HOT_URLS_MIN = 64
NEVER_MS = 1 << 62  # later than any moment
STARVED_STEP_MS = 20  # a partition steps no more often than this, however hungry the node is
LOW_STEP_MS = 1_000
EXTRA_DIVISOR_MAX = 8  # as small a part of the hot set, one of so many URLs, is for extra ones when a node is behind
UNFOLDED_URLS_MAX = 500  # in an inbox: some 50 KB of Redis
FOLDED_URLS_MAX = 500  # folded since the last durable manifest: some 50 KB of a partition's inbox in Redis
_ONE_FIELD = 2  # its name and its value
_new_tuple = tuple.__new__  # the class's own constructor is Python
PERSISTED_MS = 2_000  # in that time a Redis with AOF everysec has persisted what it was told


class OwnedPartition:
    """A partition of which this node is the owner, in one epoch."""

    def __init__(
        self,
        keys: PartitionKeys,
        who: Identity,
        disk: Partition,
        hot_urls: int,
        connections: int,
        line: DueLine[OwnedPartition],
        loss_ms: int = 0,
    ) -> None:
        self._retention = Retention(loss_ms)
        self._line = line  # hears when the partition is due
        self._due_ms = NEVER_MS
        self.keys = keys
        self.who = who
        self.disk = disk
        self.hot: Counter[str] = Counter()  # by host
        self.hot_urls = 0  # URLs of this partition in Redis, taken ones included
        self.away: dict[str, int] = {}  # hosts snoozed or retired: so many of their URLs may be hot
        self.unawaited: frozenset[str] = frozenset()  # those of them that the crawl does not wait for
        self._next_tries = 0  # hot URLs of those hosts, one of each: they take no room from others
        self.snoozes = 0  # changes of those hosts, when Redis was last asked
        self.snoozes_seen = -1  # and when `away` was read
        self.away_read_ms = 0  # monotonic
        self.withheld = 0  # of those on disk: URLs that no budget lets go, or whose host is unawaited
        self.waiting = 0  # the others, when a step last ended
        self._has_only_extra = False  # those that come next are beyond their budgets
        self._extra_divisor = 1  # one of so many hot URLs may be so
        self._count_waiting()
        self.draining = False
        self.is_damaged = False
        self.take_share = 4  # URLs to ask for: about what its due hosts have
        self.stepped_ms = 0
        self.durable_ms = 0
        self.inbox_moved = True  # URLs wait in the inbox, for all that is known
        self.suspects: dict[int, Suspicion] = {}  # by sequence number
        self.outcomes_wait = False  # and so do other entries, of no haste
        self.unfolded_urls = 0  # in the inbox when Redis was last asked
        self._miscounted = 0  # appended but never folded, when nothing waited: rejected, or forgotten by Redis
        self._hot_max = max(HOT_URLS_MIN, hot_urls)
        self._connections = connections
        self.admitted = 0  # the last admit batch that Redis has confirmed
        self._offered: list[tuple[int, list[str]]] = []  # the hosts of those after it that are told of
        self.moved = MovedUrls()
        self.owes_publish = False  # Redis may not have heard the last counts
        self._trim: tuple[str, int] = ("0-0", 0)
        self._owes_trim = False
        self._durable_folded = disk.folded_urls
        self._asked = 0  # inbox entries that the step under way has asked for
        self._read_upto = NO_INBOX_ID  # the last of those it got
        self._left_some = False  # the last step did not take all that waited
        self._stalled_at: int | None = None  # hot URLs when a step last found nothing to do

    def __repr__(self) -> str:
        return f"<OwnedPartition {self.keys.partition} epoch={self.who.epoch} hot={self.hot_urls} disk={self.disk!r}>"

    @property
    def due_ms(self) -> int:
        """When a host of the partition may next be taken, on the monotonic clock."""
        return self._due_ms

    @due_ms.setter
    def due_ms(self, due_ms: int) -> None:
        if due_ms != self._due_ms:
            self._due_ms = due_ms
            if due_ms < NEVER_MS:
                self._line.note(self)

    @property
    def room(self) -> int:
        """URLs that may be admitted now."""
        return self._room(self._hot_max)

    @property
    def extra_room(self) -> int:
        """URLs that may be admitted now if they are extra."""
        return self._room(self._hot_max // self._extra_divisor)

    def _room(self, hot_max: int) -> int:
        return max(0, min(ADMIT_URLS_MAX, hot_max - self._hot_of_others))

    @property
    def _hot_of_others(self) -> int:
        """Hot URLs, but for the next tries of hosts that are away: as many of those as there may be stop no other."""
        return self.hot_urls - self._next_tries

    def has_only_failing(self, fails: Callable[[str], bool]) -> bool:
        """Whether all that waits here are URLs of hosts that are away, or of which `fails` is true; no step may run."""
        if self.inbox_moved or not all(host in self.away or fails(host) for host in self.hot):
            return False
        return self.disk.waiting == self.disk.withheld(self.away)

    @property
    def is_behind(self) -> bool:
        """Whether a committed admit batch is not known to be in Redis."""
        return self.admitted < self.disk.batch_number

    def wants_step(self, now_ms: int, step_ms: int, *, starved: bool = False) -> bool:
        """Whether a step is due: keys wait, or the hot set runs low while URLs wait on disk.

        A step costs about the same for ten keys as for a thousand, so keys are let gather: `step_ms` long while
        the hot set is well filled, a second when it is not or when many have gathered, and hardly at all when
        the node is `starved` and this partition has next to nothing to fetch. Where only extra URLs wait, their part
        of the hot set fills it well, and keys gather the longer, the smaller that is.
        """
        hot = self._hot_of_others
        hot_max = self._hot_max // self._extra_divisor if self._has_only_extra else self._hot_max
        runs_low = self.waiting > 0 and hot <= hot_max // 2
        # Full hosts only: nothing to admit until one of their URLs has ended.
        runs_low = runs_low and (self._stalled_at is None or hot < self._stalled_at)
        if not (self.inbox_moved or runs_low):
            return False
        if starved and hot < hot_max // 8:
            step_ms = min(step_ms, STARVED_STEP_MS)
        elif hot <= hot_max // 2 or self.unfolded_urls >= UNFOLDED_URLS_MAX:
            step_ms = min(step_ms, LOW_STEP_MS)
        elif hot <= self._hot_max // 2:
            step_ms = min(step_ms, LOW_STEP_MS * self._extra_divisor)
        return now_ms - self.stepped_ms >= step_ms

    def wants_outcomes(self, now_ms: int, step_ms: int, *, idle: bool = False) -> bool:
        """Whether a step is due for entries that bring no URLs: they wait for a step of URLs, but not for ever.

        A node that is `idle` takes them up at once: a crawl is finished only when they are folded.
        """
        if idle:
            step_ms = STARVED_STEP_MS
        elif self._left_some:
            step_ms = min(step_ms, LOW_STEP_MS)
        return self.outcomes_wait and now_ms - self.stepped_ms >= step_ms

    def wants_durable(self, now_ms: int, durable_ms: int) -> bool:
        """Whether the files should be forced to the disk, or trimming is owed for the last time they were.

        Sooner when much was folded since: the inbox is trimmed behind it, and Redis must stay small.
        """
        if self.disk.folded_urls - self._durable_folded >= FOLDED_URLS_MAX:
            durable_ms = min(durable_ms, PERSISTED_MS)
        return now_ms - self.durable_ms >= durable_ms and (self.disk.has_undurable_changes or self._owes_trim)

    # --- opening

    async def bring_up(self, client: RedisClient, claim: Claim) -> int:
        """Bring Redis and disk of a newly claimed partition to the same point; in how many ms a host is due."""
        if claim.admitted > self.disk.batch_number:
            await self._fold_forgotten(client, claim.admitted)
        await client.run([scripts.advance_inbox(self.keys, self.disk.inbox_id)])
        if claim.admitted < self.disk.batch_number:
            await self._offer_again(client, claim.admitted)
        self.admitted = self.disk.batch_number
        return await self.count_hot(client)

    async def _offer_again(self, client: RedisClient, admitted: int) -> None:
        """The manifest is ahead of Redis, by a batch that was not told yet, or by all that Redis has forgotten.

        What has ended since is not offered again. Where a batch is so old that its text is gone, its URLs are forgotten
        here too, so that they are new to whoever links to them.
        """
        batches = await asyncio.to_thread(lambda: list(self.disk.pending_batches(admitted)))
        ended = await asyncio.to_thread(self._ended_of, [url for batch in batches for url in batch.urls])
        if gone := [batch for batch in batches if not batch.has_text]:
            await self._forget_lost(client, gone, ended)
        again = sum(url.key not in ended for batch in batches if batch.has_text for url in batch.urls)
        calls: list[scripts.Call[bool]] = [self._admission(batch, ended) for batch in batches]
        await client.run([*calls, scripts.note_rewind(self.keys, self.who, again)])

    async def _forget_lost(self, client: RedisClient, gone: Sequence[AdmitBatch], ended: Collection[int]) -> None:
        """Let URLs whose text is gone be as if they had never been seen, and say so."""
        lost = [url.key for batch in gone for url in batch.urls if url.key not in ended]
        logger.error(
            "partition %(partition)d: Redis has lost more than BIGCRAWL_REDIS_LOSS_SECONDS; gone with it are "
            "%(lost)d URLs, which are fetched when a page links to them, and those of %(unknown)d older batches",
            {"partition": self.keys.partition, "lost": len(lost), "unknown": sum(not batch.urls for batch in gone)},
        )
        starts = range(0, len(lost), FORGET_AT_ONCE)
        packed = [pack_keys(lost[at : at + FORGET_AT_ONCE]) for at in starts]
        await client.run([scripts.note_rewind(self.keys, self.who, 0, keys) for keys in packed])

    def _ended_of(self, urls: Sequence[QueuedUrl]) -> set[int]:
        """The keys of those that have ended, for all that is known; what is fetched each time is left out."""
        keys = np.array([url.key for url in urls if not url.flags & UNCHECKED], dtype=np.uint64)
        has_ended, _ = self.disk.ends(keys)
        return set(keys[has_ended].tolist())

    async def _fold_forgotten(self, client: RedisClient, admitted: int) -> None:
        """The manifest is behind Redis: what it admitted since must not be admitted again."""
        rows = pairs_of(await client.command("HGETALL", self.keys.batches))
        batches = {int(number): unpack_keys(packed) for number, packed in rows}
        missing = sum(number not in batches for number in range(self.disk.batch_number + 1, admitted + 1))
        if missing:
            logger.error(
                "partition %(partition)d: its files are older than all that Redis remembers, as an old copy is; "
                "up to %(urls)d URLs are fetched again, and what the inbox brought since is lost",
                {"partition": self.keys.partition, "urls": missing * ADMIT_URLS_MAX},
            )
        await asyncio.to_thread(self.disk.fold_admitted, batches, admitted)

    async def count_hot(self, client: RedisClient) -> int:
        """Learn how many URLs of each host are in Redis, none of them taken; in how many ms a host is due, or never."""
        hot: Counter[str] = Counter()
        ready = scores_of(await client.command("ZRANGE", self.keys.ready, 0, -1, "WITHSCORES"))
        counts = await client.commands([("ZCARD", self.keys.back + host) for host, _ in ready])
        hot.update({host: int(count) for (host, _), count in zip(ready, counts, strict=True) if count})
        self.hot, self.hot_urls = hot, hot.total()
        return max(0, int(ready[0][1]) - client.now_ms()) if ready else NEVER_MS

    def settle(self, who: Identity, reply: Reconciled, taken: Iterable[str]) -> None:
        """Both sides are the same again; what is known of Redis is as it was then.

        Args:
            who: this node, in the generation that has begun.
            reply: what Redis told.
            taken: the hosts of the URLs that the node holds.
        """
        self.who = who
        hot = Counter(taken)
        hot.update(reply.queued)
        for number, hosts in self._offered:
            if number > reply.admitted:
                hot.update(hosts)
        self.hot, self.hot_urls = hot, hot.total()
        self.inbox_moved = self.outcomes_wait = self.owes_publish = True
        self.snoozes_seen = -1
        self._stalled_at = None
        self.due_ms = 0 if self.hot else NEVER_MS

    # --- stepping

    def note_inbox(self, view: scripts.PartitionView) -> None:
        """Learn from a look at Redis whether entries wait in the inbox, and whether they bring URLs."""
        unfolded = view.count("appended_urls") - view.count("folded_urls")
        inbox_id = id_order(view.inbox_id)
        self.snoozes = view.count("snoozes")
        # A Redis that is new has counted from zero what is appended, the disk what is folded from the crawl's start.
        if inbox_id <= id_order(view.folded) or unfolded < self._miscounted:
            self._miscounted = unfolded
        self.unfolded_urls = unfolded - self._miscounted
        if inbox_id > id_order(self.disk.inbox_id):
            self.outcomes_wait = True
            self.inbox_moved = self.inbox_moved or unfolded != self._miscounted

    def inbox_command(self, entries_max: int) -> tuple[Value, ...]:
        """The command that reads inbox entries not folded yet, oldest first."""
        self._asked = entries_max
        return ("XRANGE", self.keys.inbox, "(" + self.disk.inbox_id, "+", "COUNT", entries_max)

    def parse_inbox(self, reply: Any) -> list[InboxEntry]:
        """The entries that `inbox_command` brought."""
        entries = [_entry(entry_id.decode(), fields) for entry_id, fields in reply]
        self._read_upto = entries[-1].id if entries else NO_INBOX_ID
        return entries

    def fold(self, inbox: list[InboxEntry], room: int, hot: Mapping[str, int], extra_room: int | None = None) -> Step:
        """Run one step on disk; called in a worker thread, with copies of what the loop goes on changing.

        Raises:
            TransientStoreError: the disk is full; nothing was committed.
        """
        before = self.disk.manifest_number
        step = self.disk.step(inbox, room, hot, self.away, extra_room)
        self._count_waiting()
        self._stalled_at = sum(hot.values()) if self.disk.manifest_number == before else None
        return step

    def after_step(self, step: Step, inbox_entries: int, now_ms: int) -> list[scripts.Call[Any]]:
        """The calls that tell Redis of a committed step."""
        self.stepped_ms = now_ms
        self.unfolded_urls = 0
        if step.rejected:
            logger.error(
                "%(count)d inbox entries of partition %(partition)d could not be read; they are kept, and the crawl is "
                "not finished without them: see `scrapy frontier rejected`",
                {"count": step.rejected, "partition": self.keys.partition},
            )
        if self._asked:
            # A step stops before an entry that forgets.
            is_cut = id_order(self._read_upto) > id_order(self.disk.inbox_id)
            self._left_some = is_cut or inbox_entries >= self._asked
            self.inbox_moved = self.outcomes_wait = self._left_some
        self._asked = 0
        calls: list[scripts.Call[Any]] = []
        if self._stalled_at is not None:
            return calls
        if step.batch is not None:
            self.hot.update(url.host for url in step.batch.urls)
            self.hot_urls += len(step.batch.urls)
            self._offered = [offer for offer in self._offered if offer[0] > self.admitted]
            self._offered.append((step.batch.number, [url.host for url in step.batch.urls]))
            calls.append(self._admission(step.batch))
        calls.append(self.publish())
        return calls

    def pending_admissions(self) -> list[scripts.Call[bool]]:
        """The admissions of committed batches that Redis has not confirmed."""
        return [self._admission(batch) for batch in self.disk.pending_batches(self.admitted)]

    def publish(self) -> scripts.Call[int]:
        """The call that publishes counts and trims what an earlier durable manifest made needless."""
        state: dict[str, Value] = {
            "damaged": int(self.is_damaged),
            "folded": self.disk.inbox_id,
            "manifest": self.disk.manifest_number,
            "chosen": self.disk.batch_number,
            "waiting": self.waiting,
            "withheld": self.withheld,
            "seen": self.disk.seen,
            "duplicates": self.disk.duplicates,
            "rejected": self.disk.set_aside,
            "folded_urls": self.disk.folded_urls,
        }
        return scripts.trim_partition(self.keys, self.who, *self._trim, state)

    def make_durable(self, now_ms: int) -> None:
        """Force the partition's files to the disk; called in a worker thread.

        What the round before made durable may be trimmed now: Redis has had the time to persist
        everything that was admitted before it.
        """
        before = (self.disk.durable_inbox_id, self.disk.durable_batch_number)
        self.disk.forget_text(min(before[1], self._retention.text_upto(now_ms)))
        self.disk.forget_batches(min(before[1], self._retention.keys_upto(now_ms)))
        self.disk.make_durable()
        self._retention.note(now_ms, self.disk.durable_batch_number)
        self._owes_trim = (self.disk.durable_inbox_id, self.disk.durable_batch_number) != before
        self._trim = before
        self._durable_folded = self.disk.folded_urls
        self.durable_ms = now_ms

    def _count_waiting(self) -> None:
        self.withheld = self.disk.withheld(self.unawaited)
        self.waiting = self.disk.waiting - self.withheld
        self._has_only_extra = self.disk.has_only_extra and not self.disk.parked
        self._next_tries = sum(host in self.hot for host in self.away)

    def note_away(self, away: dict[str, int]) -> None:
        """Learn which hosts are snoozed or retired, and how many URLs of each may be hot: none if nobody awaits it."""
        self.away = away
        self.unawaited = frozenset(host for host, hot_max in away.items() if not hot_max)
        self._stalled_at = None  # what a step found nothing to do with may be free to go
        self._count_waiting()

    def note_extra_divisor(self, divisor: int) -> None:
        """One of so many hot URLs may be extra from now on."""
        if divisor < self._extra_divisor:
            self._stalled_at = None
        self._extra_divisor = divisor

    def note_parked(self, host: str, urls: int) -> None:
        """So many URLs of the host were moved from its back queue to the inbox."""
        self.hot[host] -= urls
        if not self.hot[host]:
            del self.hot[host]
        self.hot_urls -= urls
        self.inbox_moved = True

    def note_ended(self, host: str) -> None:
        """A URL of the host is acknowledged and no longer in Redis."""
        count = self.hot.pop(host, 0)
        self.hot_urls -= count > 0
        if count > 1:
            self.hot[host] = count - 1

    def _admission(self, batch: AdmitBatch, ended: Collection[int] = ()) -> scripts.Call[bool]:
        """The call that admits a batch; of one without its text, and of what has ended, the number alone."""
        rows = [
            (url.host, order_of(url.priority, batch.first_seq + i), pack_member(batch.first_seq + i, url))
            for i, url in enumerate(batch.urls if batch.has_text else ())
            if url.key not in ended
        ]
        packed = pack_keys(url.key for url in batch.urls)
        return scripts.admit_urls(self.keys, self.who, batch.number, packed, self._connections, rows)


def _entry(entry_id: str, fields: Any) -> InboxEntry:
    if len(fields) == _ONE_FIELD and fields[0] == OUTCOMES:  # most are of this kind
        return _new_tuple(InboxEntry, (entry_id, b"", b"", fields[1], b""))
    found = dict(pairs_of(fields))
    return InboxEntry(entry_id, *[found.get(name, b"") for name in FIELDS])


def pack_keys(keys: Iterable[int]) -> bytes:
    """Eight little-endian bytes a key."""
    values = list(keys)
    return struct.pack(f"<{len(values)}Q", *values)


def unpack_keys(data: bytes) -> list[int]:
    """The inverse of `pack_keys`."""
    return list(struct.unpack(f"<{len(data) // 8}Q", data))
