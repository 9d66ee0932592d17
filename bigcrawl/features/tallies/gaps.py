"""Gaps between fetches, relative to the required gaps."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RATIOS: Final = (1.0, 1.02, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
"""Bounds of the buckets, as ratios of the actual gap to the due gap. Gaps in the first bucket were too short."""

ROUNDING_MS: Final = 1
"""Starts and ends are recorded in whole ms, so a gap may seem this much too short."""

TIGHTEST_MAX: Final = 20


class NamedGap(NamedTuple):
    """A gap between two fetches at one host, server or space, and the required gap."""

    name: str
    gap_ms: int
    due_ms: int

    @property
    def ratio(self) -> float:
        return self.gap_ms / self.due_ms


class GapCounts:
    bounds = RATIOS

    def __init__(self) -> None:
        self.counts = [0] * (len(RATIOS) + 1)
        self._tightest: dict[str, NamedGap] = {}
        self._tightest_below = float("inf")  # gaps with a larger ratio are not among the tightest

    def count_gap(self, name: str, gap_ms: int, due_ms: int) -> None:
        if due_ms <= 0:
            return
        ratio = gap_ms / due_ms
        if ratio < 1.0 and gap_ms + ROUNDING_MS >= due_ms:
            self.counts[1] += 1
        else:
            self.counts[bisect_right(RATIOS, ratio)] += 1
        if ratio < self._tightest_below:
            self._keep_tightest(NamedGap(name, gap_ms, due_ms))

    def add_all(self, counts: Sequence[int], tightest: Iterable[NamedGap]) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        for gap in tightest:
            self._keep_tightest(gap)

    @property
    def tightest(self) -> list[NamedGap]:
        return sorted(self._tightest.values(), key=lambda gap: (gap.ratio, gap.name))

    def _keep_tightest(self, gap: NamedGap) -> None:
        before = self._tightest.get(gap.name)
        if before is not None and before.ratio <= gap.ratio:
            return
        self._tightest[gap.name] = gap
        if len(self._tightest) > TIGHTEST_MAX:
            del self._tightest[self.tightest[-1].name]
        if len(self._tightest) == TIGHTEST_MAX:
            self._tightest_below = self.tightest[-1].ratio
