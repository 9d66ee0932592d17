"""Estimates how often a page changes; a visit only shows whether it changed since the visit before.

Changes are assumed to be a Poisson process. With one interval I between visits, the estimate is -log((n - X + 0.5) / (n
+ 0.5)) / I for X changes in n comparisons. Here comparisons are grouped by octave of interval, about 20 bytes a page,
and the estimate is the maximum likelihood for the groups.

Source: Cho and Garcia-Molina, Estimating Frequency of Change (ACM TOIT 3(3), 2003), §4 and §5.
"""

from __future__ import annotations

from math import expm1, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPARISONS_MAX = 64  # with more, all counts are halved, so that the present outweighs the past
OCTAVES_MAX = 32  # intervals from 1 s to a century
_ACCURACY = 1e-4
_EXPONENT_MAX = 700.0  # the largest power of e that a double holds
_BIAS = 0.5  # added comparisons without a change


class Comparisons(NamedTuple):
    """Comparisons of a page with the visit before, at intervals of about the same length.

    `octave` is the whole part of the binary logarithm of the interval in seconds; `seconds` is the sum of the
    intervals.
    """

    octave: int
    made: int
    changes: int
    seconds: int


History = tuple[Comparisons, ...]
"""A page's comparisons, by ascending octave, at most `OCTAVES_MAX`."""


def with_comparison(history: History, interval_s: int, *, changed: bool) -> History:
    interval_s = max(1, interval_s)
    octave = min(interval_s.bit_length() - 1, OCTAVES_MAX - 1)
    groups = {group.octave: group for group in history}
    _, made, changes, seconds = groups.get(octave, (octave, 0, 0, 0))
    groups[octave] = Comparisons(octave, made + 1, changes + changed, seconds + interval_s)
    if sum(group.made for group in groups.values()) > COMPARISONS_MAX:
        groups = {each: halved for each, group in groups.items() if (halved := _halve_counts(group)).made}
    return tuple(groups[each] for each in sorted(groups))


def _halve_counts(group: Comparisons) -> Comparisons:
    octave, made, changes, seconds = group
    half = made // 2
    # Rounded to even, to favour neither changes nor their absence.
    return Comparisons(octave, half, min(round(changes / 2), half), seconds * half // made)


def change_rate(history: Sequence[Comparisons]) -> float:
    count = sum(group.made for group in history)
    changes = sum(group.changes for group in history)
    if not changes:
        return 0.0
    mean_s = sum(group.seconds for group in history) / count
    unchanged_s = _BIAS * mean_s + sum(
        group.seconds / group.made * (group.made - group.changes) for group in history if group.made
    )
    found = [(group.changes, group.seconds / group.made) for group in history if group.changes]

    def excess(rate: float) -> float:
        return sum(x * interval / expm1(min(rate * interval, _EXPONENT_MAX)) for x, interval in found) - unchanged_s

    # 1 / r - I < I / (exp(r I) - 1) < 1 / r, so the rate lies between these two.
    low, high = changes / (unchanged_s + sum(x * interval for x, interval in found)), changes / unchanged_s
    while high > (1 + _ACCURACY) * low:
        middle = sqrt(low * high)
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return sqrt(low * high)
