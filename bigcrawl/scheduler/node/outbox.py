"""Links leave a node (step 3 of a URL's life): discovered URLs wait here, and go to inboxes in numbered batches.

So do rows with features' observations. Hints, which are rows that may be lost, wait longest: a partition's step reads
many of them at little more cost than one.

A batch keeps its number until Redis accepts it, so a repeat after a lost reply is recognised. An inbox accepts number n
only after n-1, so after a refused command later ones wait. Batches are kept for some seconds of Redis's running time,
in case it forgets them.

An inbox may lack even the batch before the first unsent one, because Redis lost more than is kept here, or this node
sent nothing for a day. Then the node begins a new session of that inbox, with numbers from 1, and Redis rejects later
messages of earlier sessions.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.node.link_graph import LinkGraph, RecentKeys
from bigcrawl.scheduler.node.unfolded import Unfolded
from bigcrawl.scheduler.records.observed import ObservedRows, pack_observed, weight_of
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.handout.observers import WaitingRows

BATCH_URLS_MAX = 2_000
BATCH_BYTES_MAX = 1 << 18  # for large requests, before compression; a larger request goes alone
# Requests with large bodies would fill memory before BIGCRAWL_OUTBOX_URLS_MAX is reached.
OUTBOX_BYTES_MAX = 64 << 20
# In Redis's running time, and longer than Redis may forget. A full outbox uses `FORGETTABLE_MS`.
KEEP_SENT_MS = 10_000
# So many hints go alone, such as those of a node that only folds other nodes' results.
HINTS_ALONE_BYTES = 1 << 16
# At first half a MB, at last 32: most links lead where recent ones of their site led, and between two pages of a site
# come those of all others.
RECENT_KEYS, RECENT_KEYS_MAX = 1 << 16, 1 << 22


class _Batch(NamedTuple):
    """One message to an inbox; `offered_before` is `Outbox.offered` before it. A tuple, because it is made faster."""

    partition: int
    session: int
    number: int
    data: bytes
    urls: int
    edges: bytes
    observed: bytes
    size: int
    offered_before: int

    @property
    def weight(self) -> int:
        """As how many URLs it counts until the owner has merged it. A row takes about as much room as a URL."""
        return self.urls + weight_of(self.observed)


class Outbox:
    """Discovered URLs on their way to inboxes. Once `flushed` reaches n, the first n offered are in Redis."""

    def __init__(
        self,
        node: str,
        crawl: str,
        urls_max: int,
        clock: Clock,
        link_graph: LinkGraph | None = None,
        partitions: int = 1,
        hints_ms: int = 0,
    ) -> None:
        self._node = node
        self._crawl = crawl
        self._urls_max = urls_max
        self._clock = clock
        self._waiting: dict[int, list[QueuedUrl]] = {}
        self._waiting_bytes = 0
        self._rows: dict[int, dict[int, bytearray]] = {}
        self._hints: dict[int, dict[int, bytearray]] = {}
        self._hints_ms = hints_ms
        self._hinted_ms = 0
        self._unsent: deque[_Batch] = deque()
        self._unsent_bytes = 0
        self._sent: deque[tuple[int, _Batch]] = deque()
        self._sent_bytes = 0
        self._numbers: dict[int, int] = {}
        self._sessions: dict[int, int] = {}
        self._recent = RecentKeys(RECENT_KEYS, RECENT_KEYS_MAX)
        self.link_graph = link_graph
        self._carried: list[WaitingRows] = []
        self.unfolded = Unfolded(crawl, partitions, urls_max)
        self._flushed_partitions: set[int] = set()
        self._partitions_with_rows: set[int] = set()
        self._when_sent: Callable[[int, int], None] = _do_nothing
        self._sealed = 0
        self.offered = 0
        self.flushed = 0
        self.dropped_recent = 0

    def __repr__(self) -> str:
        return f"<Outbox waiting={self.waiting} unsent={len(self._unsent)} offered={self.offered}>"

    @property
    def waiting(self) -> int:
        """URLs and rows that Redis has not accepted; after a partly refused flush, also some that it has."""
        return self.offered - self.flushed

    @property
    def is_full(self) -> bool:
        """Whether spiders must wait before they offer more. URLs offered nevertheless are kept."""
        return self.waiting >= self._urls_max or self._waiting_bytes + self._unsent_bytes >= OUTBOX_BYTES_MAX

    def offer(self, url: QueuedUrl, partition: int) -> None:
        """Take a URL; O(1), no I/O, never refused."""
        self._waiting.setdefault(partition, []).append(url)
        self._waiting_bytes += len(url.body)
        self.offered += 1

    def offer_rows(self, rows: ObservedRows) -> None:
        _add_rows(self._rows, rows)
        self.offered += 1

    def offer_hint(self, rows: ObservedRows) -> None:
        """Take rows that may be lost, unless the outbox is full. Nothing waits for them."""
        if not self.is_full:
            _add_rows(self._hints, rows)

    def carry(self, rows: WaitingRows) -> None:
        """Add these rows to each later batch for their partition. Nothing waits for them."""
        self._carried.append(rows)

    def remember_each(self, keys: list[int]) -> list[int]:
        """Return the positions of the keys that were not offered recently; URLs of others are dropped."""
        fresh = self._recent.remember_each(keys)
        self.dropped_recent += len(keys) - len(fresh)
        return fresh

    def remember(self, key: int) -> bool:
        is_new = self._recent.remember(key)
        self.dropped_recent += not is_new
        return is_new

    def forget_recent(self) -> None:
        self._recent.clear()

    def call_when_sent(self, function: Callable[[int, int], None]) -> None:
        """Call a function with the partition and URL count of each accepted batch."""
        self._when_sent = function

    async def flush(self, client: RedisClient) -> int:
        """Send everything that waits and return the number of URLs sent. What fails is sent next time, in order."""
        before = self.flushed
        self._seal()
        while batches := self._next_batches():
            results = await client.run_each([self._call(batch) for batch in batches])
            failed = self._record_sent(batches, results, client.running_ms)
            if failed is not None:
                raise failed
        self._forget_safe(client.running_ms)
        return self.flushed - before

    @property
    def has_flushed(self) -> bool:
        return bool(self._flushed_partitions or self._partitions_with_rows)

    def take_flushed_partitions(self) -> set[int]:
        flushed, self._flushed_partitions = self._flushed_partitions, set()
        return flushed

    def take_partitions_with_rows(self) -> set[int]:
        """Take the partitions that have received only rows since the last call."""
        partitions, self._partitions_with_rows = self._partitions_with_rows, set()
        return partitions

    def send_again(self) -> None:
        """Queue the batches of the last seconds again, because Redis may have forgotten them."""
        self._unsent.extendleft(batch for _, batch in reversed(self._sent))
        self._unsent_bytes = sum(batch.size for batch in self._unsent)
        self._sent.clear()
        self._sent_bytes = 0
        self.forget_recent()
        if self.link_graph is not None:
            self.link_graph.send_again()
        self.unfolded.forget()
        if self._unsent:  # acknowledgements wait for them again
            self.flushed = min(self.flushed, self._unsent[0].offered_before)

    def _seal(self) -> None:
        self._add_waiting_hints()
        waiting, self._waiting = self._waiting, {}
        is_small = self._waiting_bytes <= BATCH_BYTES_MAX
        for partition, urls in waiting.items():
            if is_small and len(urls) <= BATCH_URLS_MAX:
                self._add_batch(partition, urls)
                continue
            for portion in _portions(urls):
                self._add_batch(partition, portion)
        for partition in list(self._rows):
            self._add_batch(partition, ())
        for hints in (self.link_graph, *self._carried):
            for partition in hints.overdue() if hints is not None else ():
                self._add_batch(partition, ())
        self._waiting_bytes = 0
        self._sealed = self.offered
        if not self._unsent:
            self.flushed = self._sealed

    def _add_waiting_hints(self) -> None:
        """Add hints to outgoing batches once they have waited long enough. A few hints never go alone."""
        now_ms = self._clock.monotonic_ms()
        if not self._hints or now_ms - self._hinted_ms < self._hints_ms:
            return
        if not (self._waiting or self._rows or _bytes_in(self._hints) >= HINTS_ALONE_BYTES):
            return
        hints, self._hints, self._hinted_ms = self._hints, {}, now_ms
        for partition, rows_by_kind in hints.items():
            for kind, rows in rows_by_kind.items():
                _add_rows(self._rows, ObservedRows(partition, rows, kind))

    def _add_batch(self, partition: int, urls: Sequence[QueuedUrl]) -> None:
        number = self._numbers.get(partition, 0) + 1
        self._numbers[partition] = number
        edges = self.link_graph.take(partition) if self.link_graph is not None else b""
        session = self._sessions.get(partition, 1)
        rows: Mapping[int, bytes | bytearray] = self._rows.pop(partition, {})
        if self._carried:
            rows = {**rows, **{carried.kind: carried.take(partition) for carried in self._carried}}
        observed = pack_observed(rows) if rows else b""
        data = b"" if observed and not urls else encode_batch(urls)
        size = len(data) + len(observed)
        batch = _Batch(partition, session, number, data, len(urls), edges, observed, size, self._sealed)
        self._unsent.append(batch)
        self._unsent_bytes += size

    def _next_batches(self) -> list[_Batch]:
        """Return the unsent batches of one session for each inbox: those of a later one would shut out the rest."""
        if not self._sessions:
            return list(self._unsent)
        sessions: dict[int, int] = {}
        return [batch for batch in self._unsent if sessions.setdefault(batch.partition, batch.session) == batch.session]

    def _call(self, batch: _Batch) -> scripts.Call[str | None]:
        keys = partition_keys(self._crawl, batch.partition)
        hints = batch.edges, batch.observed
        return scripts.append_batch(keys, self._node, batch.session, batch.number, batch.data, batch.urls, *hints)

    def _record_sent(self, batches: list[_Batch], results: list[Any], running_ms: int) -> BigcrawlError | None:
        """Keep the refused batches in order, begin new sessions where needed, and return the first error."""
        failed: BigcrawlError | None = None
        taken: set[int] = set()
        held_up: set[int] = set()
        forgetful: set[int] = set()
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, str):
                taken.add(id(batch))
                (self._flushed_partitions if batch.data else self._partitions_with_rows).add(batch.partition)
                self._when_sent(batch.partition, batch.urls)
                self._sent.append((running_ms, batch))
                self._sent_bytes += batch.size
                if result:
                    self.unfolded.note(batch.partition, result, batch.weight)
                continue
            if isinstance(result, BigcrawlError):
                failed = failed or result
            elif batch.partition not in held_up:
                forgetful.add(batch.partition)
            held_up.add(batch.partition)
        if len(taken) == len(self._unsent):
            self._unsent.clear()
        else:
            self._unsent = deque(batch for batch in self._unsent if id(batch) not in taken)
        for partition in forgetful:
            self._begin_session(partition)
        self._unsent_bytes = sum(batch.size for batch in self._unsent)
        self.flushed = max(self.flushed, self._unsent[0].offered_before if self._unsent else self._sealed)
        return failed

    def _begin_session(self, partition: int) -> None:
        session = self._sessions[partition] = self._sessions.get(partition, 1) + 1
        number = 0
        for at, batch in enumerate(self._unsent):
            if batch.partition == partition:
                number += 1
                self._unsent[at] = batch._replace(session=session, number=number)
        self._numbers[partition] = number

    def _forget_safe(self, running_ms: int) -> None:
        while self._sent:
            keep_ms = KEEP_SENT_MS if self._sent_bytes < OUTBOX_BYTES_MAX else FORGETTABLE_MS
            if self._sent[0][0] >= running_ms - keep_ms:
                return
            self._sent_bytes -= self._sent.popleft()[1].size


def _add_rows(waiting: dict[int, dict[int, bytearray]], rows: ObservedRows) -> None:
    by_kind = waiting.get(rows.partition)
    if by_kind is None:
        by_kind = waiting[rows.partition] = {}
    if rows.kind in by_kind:
        by_kind[rows.kind] += rows.rows
    else:
        by_kind[rows.kind] = bytearray(rows.rows)


def _bytes_in(waiting: dict[int, dict[int, bytearray]]) -> int:
    return sum(len(rows) for by_kind in waiting.values() for rows in by_kind.values())


def _do_nothing(_partition: int, _urls: int) -> None: ...


def _portions(urls: list[QueuedUrl]) -> Iterator[list[QueuedUrl]]:
    start = size = 0
    for at, url in enumerate(urls):
        if at - start >= BATCH_URLS_MAX or (size + len(url.body) > BATCH_BYTES_MAX and at > start):
            yield urls[start:at]
            start, size = at, 0
        size += len(url.body)
    yield urls[start:] if start else urls
