"""A simulated crawl, with a partition or with the naive method, and what its queues cost by the page."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from benchmarks.beast.counting import CountingFiles
from benchmarks.beast.naive import NaiveQueues
from benchmarks.beast.web import Flat, Web
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# Pages between one look at the links and the next: a node's step.
ROOM = 250
# Syncing and deleting are no part of what is counted, but files must go.
_DURABLE_EVERY = 50


class Method(Protocol):
    """What takes links and hands out pages."""

    files: CountingFiles

    def step(self, urls: Sequence[QueuedUrl]) -> int:
        """Take links, return how many pages are fetched now."""
        ...


class WithPartition:
    """BEAST, as a partition does it."""

    def __init__(self, directory: Path, budget: int) -> None:
        self.files = CountingFiles()
        limits = PartitionLimits(host_hot_max=100_000)
        self.partition = Partition.open(directory, 1, limits, self.files, budgets=Flat(budget))
        self._steps = 0

    def step(self, urls: Sequence[QueuedUrl]) -> int:
        self._steps += 1
        step = self.partition.step([(f"{self._steps}-0", encode_batch(urls))] if urls else [], ROOM, {})
        self.partition.committed.forget_batches(self.partition.manifest.batch_number)
        if self._steps % _DURABLE_EVERY == 0:
            self.partition.committed.make_durable()
        return len(step.batch.urls) if step.batch else 0


class Naive:
    """Q and Q_F."""

    def __init__(self, directory: Path, budget: int) -> None:
        self.files = CountingFiles()
        self._queues = NaiveQueues(directory, self.files, budget)

    def step(self, urls: Sequence[QueuedUrl]) -> int:
        return self._queues.step(urls, ROOM)


class Cost(NamedTuple):
    """What pages cost from the row before to this one.

    Attributes:
        pages: fetched so far.
        reread: bytes read of over-budget queues, a page.
        moved: bytes read and written of all queues, a page.
        url_bytes: of a stored URL, in the mean.
    """

    pages: int
    reread: float
    moved: float
    url_bytes: float


def crawl(method: Method, web: Web, seeds: int, rows: Iterable[int]) -> Iterator[Cost]:
    """Run a crawl until each of the numbers of pages is reached, and yield what it cost since the one before."""
    urls, pages = web.links_of(seeds), 0
    before = (0, 0, 0)
    for goal in rows:
        while pages < goal:
            taken = method.step(urls)
            pages += taken
            urls = web.links_of(taken)
        files = method.files
        reread = files.total("read", "failed", "arrived")
        moved = files.total("read") + files.total("written")
        count = pages - before[0]
        yield Cost(pages, (reread - before[1]) / count, (moved - before[2]) / count, url_bytes())
        before = (pages, reread, moved)


@cache
def url_bytes() -> float:
    """Return the mean bytes of a URL as a large block holds it."""
    urls = Web(plds=200, links=64, seed=9).links_of(100)
    blocks = [encode_batch(urls[at : at + 64]) for at in range(0, 6400, 64)]
    return sum(map(len, blocks)) / 6400 + 12 / 64
