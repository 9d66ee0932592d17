"""What surrounds a partition: its inbox, and the part of Redis that takes numbered admit batches.

It keeps the promises of the scripts (batch n only after n - 1, a repeat changes nothing) and checks the
partition's: each URL admitted once, in order of arrival within its host and level, with unbroken numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from bigcrawl.scheduler.front_queues import level_of
from bigcrawl.scheduler.queued_url import UNCHECKED, QueuedUrl, encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.partition import AdmitBatch, Partition


def make_url(number: int, host: str = "a.example", priority: int = 0, flags: int = 0) -> QueuedUrl:
    """A URL whose key is a function of `number`, spread over all 64 bits and never the same for two."""
    key = (number * 0x9E3779B97F4A7C15 + 1) % (1 << 64)
    return QueuedUrl(key, host, priority, flags, b"http://%s/%d" % (host.encode(), number))


class PartitionWorld:
    """Inbox and Redis of one partition, and what must come out in the end."""

    def __init__(self) -> None:
        self.inbox: list[tuple[str, bytes]] = []
        self.hot: Counter[str] = Counter()
        self.admitted: list[QueuedUrl] = []
        self.batches: dict[int, AdmitBatch] = {}
        self._entries = 0
        self._expected: list[QueuedUrl] = []
        self._offered: set[int] = set()

    @property
    def batch_number(self) -> int:
        return len(self.batches)

    def offer(self, urls: Iterable[QueuedUrl]) -> None:
        """Append a batch to the inbox."""
        urls = list(urls)
        for url in urls:
            if url.flags & UNCHECKED or url.key not in self._offered:
                self._expected.append(url)
            if not url.flags & UNCHECKED:
                self._offered.add(url.key)
        self.offer_bytes(encode_batch(urls))

    def offer_bytes(self, data: bytes) -> None:
        """Append anything to the inbox."""
        self._entries += 1
        self.inbox.append((f"1700000000000-{self._entries}", data))

    def unread(self, partition: Partition, limit: int = 1 << 30) -> list[tuple[str, bytes]]:
        """Entries behind what the partition has folded."""
        after = int(partition.inbox_id.partition("-")[2])
        return [entry for entry in self.inbox if int(entry[0].partition("-")[2]) > after][:limit]

    def trim(self, partition: Partition) -> None:
        """Forget the entries that a durable manifest has folded."""
        upto = int(partition.durable_inbox_id.partition("-")[2])
        self.inbox = [entry for entry in self.inbox if int(entry[0].partition("-")[2]) > upto]

    def bring_up(self, partition: Partition) -> None:
        """Do what an owner does with a partition just opened."""
        if partition.batch_number < self.batch_number:
            partition.fold_admitted({n: [u.key for u in b.urls] for n, b in self.batches.items()})
            assert partition.batch_number == self.batch_number
            assert partition.admitted == len(self.admitted)
        for batch in partition.pending_batches(self.batch_number):
            self.admit(batch)

    def admit(self, batch: AdmitBatch | None) -> None:
        """Take a batch as the script does."""
        if batch is None:
            return
        if batch.number <= self.batch_number:
            assert self.batches[batch.number] == batch, "a repeated batch is the same batch"
            return
        assert batch.number == self.batch_number + 1, "no batch is skipped"
        assert batch.first_seq == len(self.admitted), "sequence numbers are unbroken"
        assert batch.urls, "no batch is empty"
        self.batches[batch.number] = batch
        self.admitted += batch.urls
        self.hot.update(url.host for url in batch.urls)

    def fetch(self, count: int) -> None:
        """End up to `count` fetches of each host."""
        self.hot = Counter({host: n - count for host, n in self.hot.items() if n > count})

    def step(self, partition: Partition, room: int, limit: int = 1 << 30) -> None:
        """One step, committed and admitted."""
        self.admit(partition.step(self.unread(partition, limit), room, self.hot).batch)

    def drain(self, partition: Partition, host_hot_max: int) -> None:
        """Step until nothing waits, fetching all that is hot in between; then check all promises."""
        for _ in range(len(self._expected) + 100):  # at worst one URL a step, of one host with room for one
            if not self.unread(partition) and not partition.waiting:
                break
            self.fetch(host_hot_max)
            self.step(partition, room=50)
        self.check_complete()

    def check_complete(self) -> None:
        """Everything offered was admitted, once, and in order."""
        assert Counter(map(_name, self.admitted)) == Counter(map(_name, self._expected))
        assert _by_queue(self.admitted) == _by_queue(self._expected)


def _name(url: QueuedUrl) -> tuple[int, bytes]:
    return url.key, url.body


def _by_queue(urls: Iterable[QueuedUrl]) -> dict[tuple[str, int], list[bytes]]:
    queues: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    for url in urls:
        queues[url.host, level_of(url.priority)].append(url.body)
    return dict(queues)
