"""Memory of all partitions of a node while millions of URLs go through them: half an hour's crawl in two minutes.

`pytest -m benchmark -s benchmarks/bench_fold_memory.py`; BIGCRAWL_BENCH_URLS chooses another number, at least
2 million. What `python -m benchmarks.memory` brings to the partitions at 650 pages a second: 1,000 hosts on 256
partitions, steps of 150 new URLs and as many known ones, an eighth of the new ones fetched by the next step, a durable
round after each. The steps run in a worker thread, which has its own heap, as a node's do. Held fixed: every default
that bounds the hot set. Left out: forcing files to the disk, and all of a node but its partitions.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import mmh3
import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.node.loops.memory import tame_memory
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch

if TYPE_CHECKING:
    from bigcrawl.drum.files import AnyPath
    from bigcrawl.scheduler.partition.partition import Step

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

URLS: Final = int(os.environ.get("BIGCRAWL_BENCH_URLS", "7_000_000"))
EARLY_URLS: Final = 1_100_000  # what such a crawl has seen after five minutes
LOOK_URLS: Final = 500_000
GROWTH_MB_MAX: Final = 10
PARTITIONS: Final = 256
HOSTS: Final = 1_000
HOT_URLS: Final = 50_000 // PARTITIONS
HOST_HOT_URLS: Final = 200
NEW_URLS: Final = 150  # a step and partition, on average
FETCHED_SHARE: Final = 1 / 8
ENTRIES: Final = 12  # of an inbox, a step
AT_ONCE: Final = 32  # partitions stepped in one go


class UnsyncedFiles(DiskFiles):
    """The real file system, but nothing waits for the medium."""

    def sync_file(self, path: AnyPath) -> None:
        pass

    def sync_directory(self, path: AnyPath) -> None:
        pass


@dataclass(slots=True)
class Load:
    """One partition and what a crawl does to it."""

    partition: Partition
    hosts: list[str]
    hot: deque[str] = field(default_factory=deque)  # a host for each URL in Redis
    known: list[QueuedUrl] = field(default_factory=list)
    steps: int = 0

    @property
    def new_urls(self) -> int:
        return round(NEW_URLS * len(self.hosts) * PARTITIONS / HOSTS)

    def inbox(self, start: int, random: Random) -> list[tuple[str, bytes]]:
        """The next step's entries: new URLs, numbered from `start` on, between those of the step before."""
        self.steps += 1
        new = [make_url(number, random.choice(self.hosts)) for number in range(start, start + self.new_urls)]
        urls = [*self.known, *new]
        random.shuffle(urls)
        self.known = new
        return [(f"{self.steps}-{i}", encode_batch(urls[i::ENTRIES])) for i in range(ENTRIES)]

    def fetch(self) -> None:
        for _ in range(min(len(self.hot), round(self.new_urls * FETCHED_SHARE))):
            self.hot.popleft()

    def fold(self, inbox: list[tuple[str, bytes]]) -> None:
        step: Step = self.partition.step(inbox, max(0, HOT_URLS - len(self.hot)), Counter(self.hot))
        if step.batch:
            self.hot.extend(url.host for url in step.batch.urls)
        self.partition.committed.forget_batches(self.partition.committed.durable_batch_number)
        self.partition.committed.make_durable()


def make_url(number: int, host: str) -> QueuedUrl:
    key = mmh3.hash64(b"%d" % number, signed=False)[0]
    return QueuedUrl(key, host, 0, 0, f"http://{host}:40111/page/{number * 37}.html".encode())


def fold_each(work: list[tuple[Load, list[tuple[str, bytes]]]]) -> None:
    for load, inbox in work:
        load.fold(inbox)


def make_loads(directory: Path) -> list[Load]:
    hosts: dict[int, list[str]] = {}
    for number in range(HOSTS):
        host = f"127.16.{number >> 8}.{number & 255}"
        hosts.setdefault(mmh3.hash(host, signed=False) % PARTITIONS, []).append(host)
    limits = PartitionLimits(host_hot_max=HOST_HOT_URLS)
    files = UnsyncedFiles()
    return [Load(Partition.open(directory / f"p{p}", 1, limits, files), mine) for p, mine in hosts.items()]


def anonymous_mb() -> float:
    """The process's own memory, without the pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1e3


def run(loads: list[Load]) -> list[tuple[int, float]]:
    """Fold all URLs; (URLs seen, MB) at each look."""
    random = Random(1)
    seen, looks = 0, [(0, anonymous_mb())]
    with ThreadPoolExecutor(1) as worker:
        while seen < URLS:
            for start in range(0, len(loads), AT_ONCE):
                work = []
                for load in loads[start : start + AT_ONCE]:
                    load.fetch()
                    work.append((load, load.inbox(seen, random)))
                    seen += load.new_urls
                worker.submit(fold_each, work).result()
            if seen - looks[-1][0] >= LOOK_URLS or seen >= URLS:
                looks.append((seen, anonymous_mb()))
                print(f"\n{seen:>12,} URLs {looks[-1][1]:6.1f} MB", end="")  # noqa: T201
    return looks


def test_memory_stays_while_millions_of_urls_are_folded(tmp_path: Path) -> None:
    """From 1.1 to 7 million URLs all partitions together take at most 10 MB more."""
    assert URLS > EARLY_URLS + LOOK_URLS
    tame_memory()
    loads = make_loads(tmp_path)
    looks = run(loads)
    early = next(mb for seen, mb in looks if seen >= EARLY_URLS)
    grown = max(mb for seen, mb in looks if seen >= EARLY_URLS) - early
    waiting = sum(load.partition.state.waiting for load in loads)
    print(f"\n{grown:.1f} MB more than at {EARLY_URLS:,} URLs; {waiting:,} wait on disk")  # noqa: T201
    assert sum(len(load.partition.state.tables.seen) for load in loads) == looks[-1][0]
    assert sum(load.partition.manifest.duplicates for load in loads) == looks[-1][0] - sum(
        len(load.known) for load in loads
    )
    assert grown <= GROWTH_MB_MAX
