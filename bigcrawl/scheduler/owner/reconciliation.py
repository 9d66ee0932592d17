"""Reconciles Redis and this node after a lost reply: taken URLs, ended URLs, and counts of hot URLs.

A partition is in doubt when the reply to a call of its owner is lost. The call may have been carried out, may not have
been, or may still be. The client records the partition. Before the node takes any further URL, it compares each of
these partitions with Redis, in one call:

- Redis makes its taken URLs equal to those that the node holds. The others go back to their queues. Their fetches have
  not begun, so their hosts need not rest.

- If an end was sent, and the URL is no longer taken in Redis, the end was carried out. It is not sent again.

- A new *generation* begins. Redis refuses all calls of an earlier generation, however late they arrive. The node
  repeats those that were under way.

- The node restarts its counts from the state of Redis at that moment. Replies of an earlier generation no longer change
  them: such a call was either carried out before, and is counted, or refused.

When Redis has forgotten its last seconds, every partition is claimed again before the comparison. URLs that have ended
or were moved to disk recently may then be queued again, and are removed. The same call reports to the inbox again how
they ended: if this node dies before the next call, no other node knows. Every host rests for its delay, because its
last fetch may be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.scheduler.records.held_urls import HeldUrls, timed_of
from bigcrawl.scheduler.records.member import order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Call, Identity, ReconcileReply
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.records.held import HeldUrl

T = TypeVar("T")
PORTION_BYTES = 2_000_000  # in one call: some 25,000 ended URLs, or fewer held URLs with long requests
ROW_BYTES = 64


@dataclass(slots=True)
class _RowPortion:
    held: list[tuple[int, str, int, bytes]] = field(default_factory=list)
    sent_ends: list[tuple[int]] = field(default_factory=list)
    lately: list[HeldUrl] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    rests: dict[str, int] = field(default_factory=dict)


class Reconciliation:
    """Compares the partitions of a node with Redis. Numbers the node's generations, which claims begin as well.

    `delay_ms` is how long every host rests if Redis has forgotten. `tell_ended` gets URLs whose sent end turns out to
    have been carried out.
    """

    def __init__(
        self,
        client: RedisClient,
        table: OwnedTable,
        held: HeldUrls,
        clock: Clock,
        delay_ms: int,
        tell_ended: Callable[[OwnedPartition, list[HeldUrl]], None],
    ) -> None:
        self._client = client
        self._table = table
        self._held = held
        self._clock = clock
        self._delay_ms = delay_ms
        self._generations = count(1)
        self._tell_ended = tell_ended

    def next_generation(self) -> int:
        return next(self._generations)

    async def settle_doubts(self) -> None:
        """Reconcile the partitions with a lost reply. No URL may be taken or ended meanwhile."""
        await self._settle_all(self._client.in_doubt, has_forgotten=False)

    async def settle_forgotten(self) -> None:
        """Reconcile all partitions, after Redis has lost its last seconds."""
        await self._settle_all(set(self._table.by_number), has_forgotten=True)

    async def _settle_all(self, partitions: set[int], *, has_forgotten: bool) -> None:
        client, by_number = self._client, self._table.by_number
        before = client.take_doubts()  # partitions that come into doubt from here on are compared next time
        try:
            doubtful = [by_number[partition] for partition in sorted(partitions) if partition in by_number]
            for lost in await self._compare_partitions(doubtful, has_forgotten=has_forgotten):
                self._table.remove_lost(lost)
        except BaseException:
            client.return_doubts(before)
            raise

    async def _compare_partitions(
        self, partitions: Sequence[OwnedPartition], *, has_forgotten: bool
    ) -> list[OwnedPartition]:
        held = self._held.by_partitions(owned.keys.partition for owned in partitions)
        works = [
            _PartitionComparison(owned, held[owned.keys.partition], self.next_generation()) for owned in partitions
        ]
        for work in works:
            work.divide_rows(self._rows_to_compare(work.owned, work.held, has_forgotten=has_forgotten))
        lost: list[OwnedPartition] = []
        failed: BigcrawlError | None = None
        while works:
            delay_ms = self._delay_ms if has_forgotten else 0
            calls = [work.next_call(delay_ms, self._client.server_run_id) for work in works]
            replies = sort_replies(works, await self._client.run_each(calls))
            lost += [work.owned for work in replies.lost]
            failed = failed or replies.failed
            for work, result in replies.done:
                work.add_reply(result)
                if not work.portions:
                    self._adopt_reply(work, result)
            works = [work for work, _ in replies.done if work.portions]
        if failed is not None:
            raise failed
        return lost

    def _adopt_reply(self, work: _PartitionComparison, last: ReconcileReply) -> None:
        ended = set(work.ended)
        self._tell_ended(work.owned, [url for url in work.held if url.seq in ended])
        work.owned.settle(work.identity, last, [url.host for url in work.held if url.seq not in ended])
        self._table.record_owed(work.owned)
        self._table.pending.to_park.add(work.owned)

    def _rows_to_compare(self, owned: OwnedPartition, held: list[HeldUrl], *, has_forgotten: bool) -> _RowPortion:
        if not has_forgotten:
            rows = [_row_of(url) for url in held if not url.is_end_sent]
            return _RowPortion(rows, [(url.seq,) for url in held if url.is_end_sent])
        rows = [_row_of(url) for url in held]
        places = [place for url in held for place in _possible_places(url)]
        partition = owned.keys.partition
        lately = self._held.recent_ends_of(partition)
        gone = {url.seq for url in held} | {url.seq for url in lately if _is_gone(url)}
        places += [place for url in lately if url.seq in gone for place in _possible_places(url)]
        places += owned.moved.places_of_merged(owned.disk.manifest.inbox_id)
        rests = self._held.lost_rests(partition, self._clock.monotonic_ms())
        return _RowPortion(rows, [], lately, places, rests)


@dataclass(slots=True)
class _PartitionComparison:
    owned: OwnedPartition
    held: list[HeldUrl]
    generation: int
    portions: list[_RowPortion] = field(default_factory=list)
    sent: int = 0
    ended: list[int] = field(default_factory=list)
    earlier: list[tuple[int]] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return replace(self.owned.identity, generation=self.generation)

    def divide_rows(self, whole: _RowPortion) -> None:
        self.portions = _in_portions(whole)

    def add_reply(self, reply: ReconcileReply) -> None:
        self.ended += reply.ended

    def next_call(self, delay_ms: int, server: str) -> Call[ReconcileReply]:
        portion = self.portions.pop(0)
        is_last = not self.portions
        self.sent += 1
        call = scripts.reconcile_partition(
            self.owned.keys,
            self.identity,
            self.sent,
            delay_ms,
            portion.held,
            self.earlier if is_last else (),
            portion.sent_ends,
            [_row_of(url)[:3] for url in portion.lately if _is_gone(url)],
            portion.places,
            portion.rests,
            outcomes=b"".join([url.end_rows for url in portion.lately]),
            timed=timed_of(portion.lately),
            is_last=is_last,
            server=server,
        )
        self.earlier += [*((row[0],) for row in portion.held), *portion.sent_ends]
        return call


def _in_portions(whole: _RowPortion) -> list[_RowPortion]:
    """Divide the rows of a comparison by size. Held URLs come first, because a URL must never be nowhere."""
    rows = len(whole.held) + len(whole.sent_ends) + len(whole.lately) + len(whole.places) + len(whole.rests)
    more_bytes = sum(len(row[3]) for row in whole.held) + sum(map(_told_bytes, whole.lately))
    if ROW_BYTES * rows + more_bytes <= PORTION_BYTES:
        return [whole]
    portions = [_RowPortion(held=rows) for rows in _bounded_pieces(whole.held, lambda row: len(row[3]))]
    portions += [_RowPortion(sent_ends=rows) for rows in _bounded_pieces(whole.sent_ends)]
    portions += [_RowPortion(lately=rows) for rows in _bounded_pieces(whole.lately, _told_bytes)]
    portions += [_RowPortion(places=rows) for rows in _bounded_pieces(whole.places)]
    portions += [_RowPortion(rests=dict(rows)) for rows in _bounded_pieces(list(whole.rests.items()))]
    return portions


def _bounded_pieces(rows: list[T], more_bytes: Callable[[T], int] = lambda row: 0) -> Iterator[list[T]]:
    piece: list[T] = []
    size = 0
    for row in rows:
        row_bytes = ROW_BYTES + more_bytes(row)
        if piece and size + row_bytes > PORTION_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += row_bytes
    if piece:
        yield piece


def _row_of(url: HeldUrl) -> tuple[int, str, int, bytes]:
    return url.seq, url.host, _order_of(url), url.member


def _is_gone(url: HeldUrl) -> bool:
    return url.end is not None and not url.end.member


def _told_bytes(url: HeldUrl) -> int:
    return len(url.end_rows) + (len(url.again.url.body) if url.again is not None else 0)


def _order_of(url: HeldUrl) -> int:
    return order_of(url.fields.priority, url.seq)


def _possible_places(url: HeldUrl) -> list[tuple[str, int]]:
    """Return the URL's possible places in its host's queue: the one before it was taken, and that of its next try."""
    orders = [_order_of(url)] if url.next_order is None else [_order_of(url), url.next_order]
    return [(url.host, order) for order in orders]
