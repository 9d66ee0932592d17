"""Arithmetic: from looks at a running crawl to figures, and from several runs to medians. No I/O, no clock."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.crawl.origin import Counts

OTHERS_SHARE_MAX: Final = 0.05  # of a core, used by processes that are no part of the run
CRAWLER_SHARE_MIN: Final = 0.90  # of its core: below, the crawler waited for something
ORIGIN_CORE_SHARE_MAX: Final = 0.90  # of the core of origin and Redis: above, they may have been waited for


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that is counted, at one moment; CPU in seconds since each process' start."""

    at_s: float
    counts: Counts
    crawler_s: float
    redis_s: float
    origin_s: float
    harness_s: float
    crawler_core_s: float
    origin_core_s: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one side.

    Attributes:
        pages: fetched between the first and the last look, in `seconds`.
        robots: robots.txt files fetched meanwhile; `others`: answers other than 200.
        crawler_ms, redis_ms, origin_ms: CPU a page.
        crawler_share, origin_share: of one core, used by the crawler and by the origin.
        rss_bytes: the crawler's largest.
        trouble: why pages/s of this run are not to be quoted; empty when they are.
    """

    side: str
    seconds: float
    pages: int
    robots: int
    others: int
    pages_per_s: float
    crawler_ms: float
    redis_ms: float
    origin_ms: float
    crawler_share: float
    origin_share: float
    rss_bytes: int
    trouble: tuple[str, ...] = ()

    @property
    def cpu_ms(self) -> float:
        """CPU a page, Redis' included."""
        return self.crawler_ms + self.redis_ms


def measured(side: str, first: Look, last: Look, rss_bytes: int) -> Measurement:
    """What happened between two looks.

    Raises:
        ValueError: no page was fetched in between.
    """
    seconds = last.at_s - first.at_s
    pages = last.counts.pages - first.counts.pages
    if pages <= 0 or seconds <= 0:
        raise ValueError(f"{side} fetched {pages} pages in {seconds:.1f} s: nothing to measure; see its crawl.log")
    crawler_s, redis_s = last.crawler_s - first.crawler_s, last.redis_s - first.redis_s
    origin_s = last.origin_s - first.origin_s
    return Measurement(
        side=side,
        seconds=seconds,
        pages=pages,
        robots=last.counts.robots - first.counts.robots,
        others=last.counts.others - first.counts.others,
        pages_per_s=pages / seconds,
        crawler_ms=1000 * crawler_s / pages,
        redis_ms=1000 * redis_s / pages,
        origin_ms=1000 * origin_s / pages,
        crawler_share=crawler_s / seconds,
        origin_share=origin_s / seconds,
        rss_bytes=rss_bytes,
        trouble=tuple(_troubles(first, last)),
    )


def _troubles(first: Look, last: Look) -> list[str]:
    seconds = last.at_s - first.at_s
    crawler_s = last.crawler_s - first.crawler_s
    known_s = sum(after - before for before, after in _origin_core_users(first, last))
    crawler_core_s = last.crawler_core_s - first.crawler_core_s
    origin_core_s = last.origin_core_s - first.origin_core_s
    troubles = []
    others_s = (crawler_core_s - crawler_s, origin_core_s - known_s)
    for name, share in zip(("crawler's", "origin's"), (s / seconds for s in others_s), strict=True):
        if share > OTHERS_SHARE_MAX:
            troubles.append(f"others used {share:.0%} of the {name} core")
    if origin_core_s / seconds > ORIGIN_CORE_SHARE_MAX:
        troubles.append(f"the origin's core was {origin_core_s / seconds:.0%} busy")
    if crawler_s / seconds < CRAWLER_SHARE_MIN:
        troubles.append(f"the crawler used only {crawler_s / seconds:.0%} of its core")
    return troubles


def _origin_core_users(first: Look, last: Look) -> Sequence[tuple[float, float]]:
    return (
        (first.redis_s, last.redis_s),
        (first.origin_s, last.origin_s),
        (first.harness_s, last.harness_s),
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Several runs' values of one figure: the median, the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


def spread(runs: Sequence[Measurement], figure: Callable[[Measurement], float]) -> Spread:
    """A figure over all runs of one side; those with trouble count only where there are no others."""
    quiet = [run for run in runs if not run.trouble]
    return Spread.of([figure(run) for run in quiet or runs])
