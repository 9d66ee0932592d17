"""`python -m benchmarks.memory --minutes 30`: does a node's memory stay where it was?

A crawl with bigcrawl's side of `make bench`, everything on and at full speed, of a web without end. Promised is that
the node's resident memory in the last minute is within 10 % of that in minute 5; in shorter runs, of that after a
sixth of the time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.report import say
from benchmarks.crawl.run import Crawl, Plan, crawling

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE_S: Final = 10.0
SAID_EVERY: Final = 6  # samples
EARLY_MINUTE: Final = 5.0
EARLY_SHARE: Final = 1 / 6
WINDOW_S: Final = 60.0
GROWTH_MAX: Final = 0.10


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: seconds since the start, memory of node and Redis, pages fetched until then."""

    at_s: float
    node_bytes: int
    redis_bytes: int
    pages: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Memory of the node over a crawl.

    Attributes:
        early_mb, late_mb: medians of the minute up to the early look, and of the last minute; less in short runs.
        growth: of late over early; 0.1 is 10 % more.
        mb_an_hour: slope of the line through all samples from the early look on, by least squares.
    """

    early_s: float
    early_mb: float
    late_mb: float
    growth: float
    mb_an_hour: float


def curve(samples: Sequence[Sample], minutes: float) -> Curve:
    """What the samples of a run say.

    Raises:
        ValueError: fewer than two samples after the early look.
    """
    early_s = 60 * min(EARLY_MINUTE, minutes * EARLY_SHARE)
    late = [sample for sample in samples if sample.at_s >= early_s]
    if len(late) < 2:
        raise ValueError(f"{len(late)} samples after {early_s:.0f} s; a curve needs two")
    window_s = min(WINDOW_S, early_s / 2)
    early = [sample for sample in samples if early_s - window_s <= sample.at_s <= early_s]
    early_mb = _median_mb(early or late[:1])
    late_mb = _median_mb([sample for sample in samples if sample.at_s >= samples[-1].at_s - window_s])
    slope = statistics.linear_regression([s.at_s for s in late], [s.node_bytes for s in late]).slope
    return Curve(early_s, early_mb, late_mb, late_mb / early_mb - 1, slope * 3600 / 1e6)


def _median_mb(samples: Sequence[Sample]) -> float:
    return statistics.median(sample.node_bytes for sample in samples) / 1e6


def watch(crawl: Crawl, minutes: float) -> list[Sample]:
    """Look every ten seconds for so long."""
    samples: list[Sample] = []
    started = time.monotonic()
    while (at_s := time.monotonic() - started) < 60 * minutes:
        crawl.check_alive()
        assert crawl.redis is not None
        node_bytes, redis_bytes = procfs.rss_bytes(crawl.process.pid), procfs.rss_bytes(crawl.redis.pid)
        sample = Sample(at_s, node_bytes, redis_bytes, crawl.origin.counter.read().pages)
        samples.append(sample)
        if len(samples) % SAID_EVERY == 1:
            memory = f"node {node_bytes / 1e6:4.0f} MB  Redis {redis_bytes / 1e6:4.0f} MB"
            say(f"{at_s:6.0f} s  {memory}  {sample.pages:,} pages")
        time.sleep(SAMPLE_S)
    return samples


def main() -> int:
    """Crawl and judge: 0, or 1 when memory is not flat."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="default 30")
    parser.add_argument("--hosts", type=int, default=1000, help="default 1,000")
    parser.add_argument("--json", type=Path, default=Path("bench-memory.json"), metavar="FILE")
    options = parser.parse_args()
    procfs.keep_to(procfs.ORIGIN_CORE)
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-bench-"))
    try:
        with crawling("bigcrawl", Plan(options.hosts, 60 * options.minutes, {}), directory / "crawl") as crawl:
            samples = watch(crawl, options.minutes)
            crawl.stop()
    finally:
        shutil.rmtree(directory)
    found = curve(samples, options.minutes)
    told = {"machine": describe_machine(), "curve": asdict(found), "samples": [asdict(sample) for sample in samples]}
    options.json.write_text(json.dumps(told, indent=1) + "\n")
    is_flat = abs(found.growth) <= GROWTH_MAX
    verdict = "flat" if is_flat else f"not flat: at most {GROWTH_MAX:.0%} is promised"
    say(
        f"node: {found.early_mb:.0f} MB after {found.early_s / 60:.1f} minutes, {found.late_mb:.0f} MB at the end: "
        f"{found.growth:+.1%}, {found.mb_an_hour:+.1f} MB an hour; {verdict}"
    )
    return 0 if is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
