"""Links leave a node (step 3): a bounded wait of discovered URLs, sent to inboxes in numbered batches.

A batch keeps its number until Redis has taken it, so that a repeat after a lost reply is recognised; what
was sent in the last seconds is kept, so that a Redis that forgot its last second gets it again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.queued_url import QueuedUrl, encode_batch
from bigcrawl.scheduler.recent import RecentKeys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.link_graph import LinkGraph

BATCH_URLS_MAX = 2_000  # bounds a message to some 200 KB
# Redis with AOF everysec forgets one second at most, two when its disk is slow; the third is the margin.
KEEP_SENT_MS = 3_000
# Places for keys that were sent, 2 MB: most links lead where others just led.
RECENT_KEYS = 1 << 18


@dataclass(frozen=True, slots=True)
class _Batch:
    partition: int
    number: int
    data: bytes
    urls: int
    edges: bytes


class Outbox:
    """Discovered URLs on their way to the partitions' inboxes.

    `offered` and `flushed` count URLs from the start of the node: everything that was offered when `offered`
    was n is in Redis once `flushed` has reached n. That is the barrier an acknowledgement waits for.
    """

    def __init__(self, node: str, crawl: str, urls_max: int, clock: Clock, link_graph: LinkGraph | None = None) -> None:
        self._node = node
        self._crawl = crawl
        self._urls_max = urls_max
        self._clock = clock
        self._waiting: dict[int, list[QueuedUrl]] = {}
        self._unsent: deque[_Batch] = deque()
        self._sent: deque[tuple[int, _Batch]] = deque()
        self._numbers: dict[int, int] = {}
        self._recent = RecentKeys(RECENT_KEYS)
        self._link_graph = link_graph
        self._flushed_partitions: set[int] = set()
        self.offered = 0
        self.flushed = 0
        self.dropped_recent = 0

    def __repr__(self) -> str:
        return f"<Outbox waiting={self.waiting} unsent={len(self._unsent)} offered={self.offered}>"

    @property
    def waiting(self) -> int:
        """URLs that Redis has not taken yet."""
        return self.offered - self.flushed

    @property
    def is_full(self) -> bool:
        """Whether spiders must wait before they offer more; what is offered all the same is kept."""
        return self.waiting >= self._urls_max

    def offer(self, url: QueuedUrl, partition: int) -> None:
        """Take a URL on its way; O(1), no I/O, never refused."""
        self._waiting.setdefault(partition, []).append(url)
        self.offered += 1

    def not_recent(self, keys: KeyArray) -> list[int]:
        """Where the keys, different ones, stand of which no checked URL was offered lately; they count as offered now.

        The others are dropped: their first sighting is in the outbox or in Redis already, and an
        acknowledgement waits for both alike.
        """
        fresh: list[int] = self._recent.new(keys).tolist()
        self.dropped_recent += len(keys) - len(fresh)
        return fresh

    def is_recent(self, key: int) -> bool:
        """Whether a checked URL of this key was offered lately; it counts as offered now."""
        is_recent = not self._recent.is_new(key)
        self.dropped_recent += is_recent
        return is_recent

    async def flush(self, client: RedisClient) -> int:
        """Send everything that waits; return the URLs sent.

        Raises:
            TransientStoreError: Redis did not take all; the rest goes with the same numbers next time.
        """
        target = self.offered
        self._seal()
        if not self._unsent:
            return 0
        before = self.flushed
        batches = list(self._unsent)
        await client.run([self._call(batch) for batch in batches])
        now_ms = self._clock.monotonic_ms()
        for batch in batches:
            self._unsent.popleft()
            self._flushed_partitions.add(batch.partition)
            self._sent.append((now_ms, batch))
        self.flushed = target
        self._forget_old(now_ms)
        return target - before

    def take_flushed_partitions(self) -> set[int]:
        """The partitions that got batches since this was last asked."""
        flushed, self._flushed_partitions = self._flushed_partitions, set()
        return flushed

    def resend_recent(self) -> None:
        """Queue again what was sent in the last seconds: Redis may have forgotten it."""
        self._unsent.extendleft(batch for _, batch in reversed(self._sent))
        self._sent.clear()

    def _seal(self) -> None:
        """Turn waiting URLs into numbered batches."""
        waiting, self._waiting = self._waiting, {}
        for partition, urls in waiting.items():
            for start in range(0, len(urls), BATCH_URLS_MAX):
                self._add_batch(partition, urls[start : start + BATCH_URLS_MAX])
        if self._link_graph is not None:
            for partition in self._link_graph.overdue():
                self._add_batch(partition, ())

    def _add_batch(self, partition: int, urls: Sequence[QueuedUrl]) -> None:
        number = self._numbers.get(partition, 0) + 1
        self._numbers[partition] = number
        edges = self._link_graph.take(partition) if self._link_graph is not None else b""
        self._unsent.append(_Batch(partition, number, encode_batch(urls), len(urls), edges))

    def _call(self, batch: _Batch) -> scripts.Call[bool]:
        keys = partition_keys(self._crawl, batch.partition)
        return scripts.append_batch(keys, self._node, batch.number, batch.data, batch.urls, batch.edges)

    def _forget_old(self, now_ms: int) -> None:
        while self._sent and self._sent[0][0] < now_ms - KEEP_SENT_MS:
            self._sent.popleft()
