"""Arithmetic: pages by what the node did when they were served. No I/O, no clock."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.merges.step_log import Span

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rates:
    """Pages a second while something happened, and while it did not.

    Attributes:
        during_ms, between_ms: how long each lasted in all.
        during, between: pages a second; None where it lasted no time.
        worst_s: the fewest pages of any second that was touched by it; None where no second was.
    """

    during_ms: int
    between_ms: int
    during: float | None
    between: float | None
    worst_s: int | None

    @property
    def ratio(self) -> float | None:
        """What the rate falls to."""
        return self.during / self.between if self.during is not None and self.between else None


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same moments as disjoint intervals, ascending; empty ones are left out."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found


def within(intervals: Iterable[Interval], bounds: Interval) -> list[Interval]:
    """The parts of intervals that lie inside bounds."""
    cut = ((max(start, bounds[0]), min(end, bounds[1])) for start, end in intervals)
    return [(start, end) for start, end in cut if start < end]


def rates(pages_ms: Sequence[int], intervals: Iterable[Interval], bounds: Interval) -> Rates:
    """Compare the pages inside intervals with all others.

    Args:
        pages_ms: when each page was served, ascending.
        intervals: when it happened, in any order; they may overlap.
        bounds: what is measured, first millisecond and the one behind the last.
    """
    during = union(within(intervals, bounds))
    during_ms = sum(end - start for start, end in during)
    between_ms = bounds[1] - bounds[0] - during_ms
    inside = sum(_count(pages_ms, start, end) for start, end in during)
    outside = _count(pages_ms, *bounds) - inside
    return Rates(
        during_ms,
        between_ms,
        1000 * inside / during_ms if during_ms else None,
        1000 * outside / between_ms if between_ms else None,
        min(
            (_count(pages_ms, at, at + 1000) for start, end in during for at in _seconds(start, end, bounds)),
            default=None,
        ),
    )


def curve(pages_ms: Sequence[int], bounds: Interval, bin_ms: int = 100) -> list[int]:
    """Pages of each bin from the first bound on; a last one that is cut off is left out."""
    starts = range(bounds[0], bounds[1] - bin_ms + 1, bin_ms)
    return [_count(pages_ms, start, start + bin_ms) for start in starts]


def merges(spans: Iterable[Span], keys_min: int) -> list[Span]:
    """Steps that wrote at least so many keys into runs."""
    return [span for span in spans if span.keys_written >= keys_min]


def _seconds(start: int, end: int, bounds: Interval) -> Iterable[int]:
    """Starts of seconds that overlap an interval by half at least, or hold all of it; inside the bounds."""
    first, last = max(bounds[0], start - 500), min(bounds[1] - 1000, max(end - 500, start - 500))
    return range(first, last + 1, 100)


def _count(pages_ms: Sequence[int], start: int, end: int) -> int:
    return bisect_left(pages_ms, end) - bisect_left(pages_ms, start)
