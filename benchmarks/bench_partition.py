"""What a partition costs.

Run on a quiet machine: ``pytest -m benchmark -s benchmarks/bench_partition.py``.

Held fixed: one thread, the file system of the temporary directory, URLs of about 60 bytes, no fsync but
where a line says durable. Each line is a time and what it is for; the counts are asserted.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import mmh3
import numpy as np
import pytest

from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, Kind
from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

LIMITS = PartitionLimits()
PARTITIONS = 256  # the default of BIGCRAWL_PARTITIONS
BATCH_URLS = 2000  # what a node sends at most in one batch


def make_batches(start: int, count: int, hosts: int, size: int = BATCH_URLS) -> list[tuple[str, bytes]]:
    urls = [
        QueuedUrl(
            mmh3.hash64(b"%d" % i, signed=False)[0],
            f"www{i % hosts}.example.org",
            0,
            0,
            b"http://www%d.example.org/library/path/%d.html" % (i % hosts, i),
        )
        for i in range(start, start + count)
    ]
    return [(f"{start + 1}-{i}", encode_batch(urls[i : i + size])) for i in range(0, count, size)]


def timed(title: str, started: float, per: int = 1) -> float:
    seconds = time.perf_counter() - started
    print(f"{title:.<64} {seconds / per * 1e3:10.3f} ms")  # noqa: T201 - the benchmark's answer
    return seconds


def test_a_hundred_thousand_new_urls_in_one_step(tmp_path: Path) -> None:
    """A large step: decode, check, queue, choose 1,000, commit."""
    partition = Partition.open(tmp_path / "p", 1, LIMITS)
    inbox = make_batches(0, 100_000, 1000)
    started = time.perf_counter()
    step = partition.step(inbox, 1000, {})
    timed("step of 100,000 new URLs", started)
    assert step.new == 100_000
    assert step.batch
    assert len(step.batch.urls) == 1000


class Calls(DiskFiles):
    """The real file system; counts what it is asked for, by kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if hasattr(DiskFiles, name):
            self.counts[name] += 1
        return super().__getattribute__(name)


class Meter:
    """CPU time of this thread, summed over what is done within it, and the calls made there.

    The split into user and system time is the kernel's, which counts in ticks of some milliseconds: it means
    something where what is measured lasts longer, or is measured often.
    """

    def __init__(self, files: Calls, per: int = 1) -> None:
        self._files = files
        self._per = per
        self._rounds = 0
        self._cpu = self._user = self._system = 0.0
        self._calls: Counter[str] = Counter()

    def __enter__(self) -> None:
        self._files.counts.clear()
        self._usage, self._started = resource.getrusage(resource.RUSAGE_THREAD), time.thread_time()

    def __exit__(self, *_: object) -> None:
        self._cpu += time.thread_time() - self._started
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        self._user += usage.ru_utime - self._usage.ru_utime
        self._system += usage.ru_stime - self._usage.ru_stime
        self._calls += self._files.counts
        self._rounds += self._per

    def report(self, title: str) -> None:
        """Print the means of one."""
        cpu = 1e6 * self._cpu / self._rounds
        system = self._system / max(self._system + self._user, 1e-9)
        calls = ", ".join(f"{kind} {count / self._rounds:.2f}" for kind, count in sorted(self._calls.items()))
        print(f"{title:.<44} {cpu:6.0f} us, {system:4.0%} system: {calls}")  # noqa: T201


STEPS_A_ROUND = 50


@pytest.mark.parametrize(("urls", "rounds"), [(10, 40), (100, 10), (100, 40), (200, 10), (1000, 4)])
def test_small_steps(tmp_path: Path, urls: int, rounds: int) -> None:
    """Steps of few new URLs, half of them admitted, and a durable round after fifty."""
    files = Calls()
    partition = Partition.open(tmp_path / "p", 1, LIMITS, files)
    stepping, syncing = Meter(files, STEPS_A_ROUND), Meter(files)
    for number in range(rounds):
        inbox = make_batches(number * STEPS_A_ROUND * urls, STEPS_A_ROUND * urls, 1000, size=urls)
        with stepping:
            for entry in inbox:
                partition.step([entry], urls // 2, {})
        partition.committed.forget_batches(partition.committed.durable_batch_number)
        with syncing:
            partition.committed.make_durable()
    seen = rounds * STEPS_A_ROUND * urls
    stepping.report(f"step of {urls} new URLs, up to {seen:,} seen")
    syncing.report("  durable round after fifty of them")
    assert partition.manifest.admitted == seen // 2
    assert len(partition.state.tables.seen) == seen


def test_all_partitions_open_and_become_durable(tmp_path: Path) -> None:
    """256 partitions taken over by a new owner, and made durable by it."""
    for epoch in (1, 2):
        started = time.perf_counter()
        partitions = [Partition.open(tmp_path / f"p{number:04d}", epoch, LIMITS) for number in range(PARTITIONS)]
        timed(f"{PARTITIONS} partitions opened, epoch {epoch}", started)
        for number, partition in enumerate(partitions):
            partition.step(make_batches(epoch * 10**6 + number * 100, 100, 9), 10, {})
        started = time.perf_counter()
        for partition in partitions:
            partition.committed.make_durable()
        timed(f"{PARTITIONS} partitions made durable", started)
        assert sum(len(partition.state.tables.seen) for partition in partitions) == epoch * PARTITIONS * 100


def test_one_host_with_very_many_urls(tmp_path: Path) -> None:
    """A single host's 200,000 URLs, of which 64 may be hot: steps with much room and a full host."""
    partition = Partition.open(tmp_path / "p", 1, LIMITS)
    partition.step(make_batches(0, 200_000, 1), 0, {})
    hot = {"www0.example.org": 0}
    admitted, steps = 0, 0
    started = time.perf_counter()
    while partition.state.waiting and steps < 1000:
        step = partition.step([], 1000, hot)
        admitted += len(step.batch.urls) if step.batch else 0
        hot["www0.example.org"] = 54  # ten were fetched since
        partition.committed.forget_batches(partition.manifest.batch_number)
        steps += 1
    timed("step with one full host and 200,000 waiting", started, steps)
    assert admitted == 64 + 10 * (steps - 1)


def test_seen_check_of_ten_million_keys(tmp_path: Path) -> None:
    """DRUM alone: 10 M keys in batches of 100,000, half of each seen before; memory stays flat."""
    drum = Bucket(tmp_path, Kind("run"), EMPTY_BUCKET, DiskFiles())
    random = np.random.default_rng(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = random.integers(0, 2**64, 50_000, dtype=np.uint64)
    started = time.perf_counter()
    asked = 0
    while len(drum) < 10_000_000:
        new = random.integers(0, 2**64, 50_000, dtype=np.uint64)
        result = drum.check_update(np.concatenate((old, new)))
        drum.commit(result)
        for run in result.obsolete:
            (tmp_path / run.name).unlink()
        asked += 100_000
        old = new
    seconds = timed(f"check+update of 100,000 keys up to {len(drum):,}", started, asked // 100_000)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    print(f"{asked / seconds:,.0f} keys/s, {grown} MiB more memory, {len(drum.state.runs)} runs")  # noqa: T201
    assert grown <= 64
