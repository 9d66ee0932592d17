"""Estimates the size of a web from random walks, and draws a near-uniform sample of its pages.

A walk *sees* the URLs that it fetches and those that their pages link to. The *mass* of a URL is the sum of 1/n over
the fetched pages with n links that link to it. Walks choose URLs in proportion to their mass, so one chosen weighs
1/mass. For n walks, f1 URLs seen by one of them, and f2 by two:

    low      Chao's estimate (incidence): seen + (n - 1)/n * f1 (f1 - 1) / (2 (f2 + 1)), a lower bound
    high     the jackknife of second order: seen + 2 f1 - f2, too high where all URLs are equally easy to see
    pages    both, times the weighted share of pages among the chosen URLs
    covered  the weighted share of chosen pages that a list has
    error    20 groups of walks left out in turn (grouped jackknife), on the logarithm

Sources: Chao, "Estimating the population size for capture-recapture data with unequal catchability" (Biometrics 1987);
Burnham and Overton, "Robust estimation of population size" (Ecology 1979); Henzinger et al., "On near-uniform URL
sampling" (WWW9, 2000). Differs: sizes follow from the links that were seen, docs/decisions/0119.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from bigcrawl_sampling.steps import WalkStep

GROUPS: Final = 20
WALKS_MIN: Final = 2 * GROUPS
_SURE: Final = 1e-9
_T_95: Final = 2.093  # of 19 degrees of freedom

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and its bounds at 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:,.0f} ({self.low:,.0f} to {self.high:,.0f})"


@dataclass(frozen=True, slots=True)
class Share:
    """A share of pages, and its bounds at 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True, slots=True)
class Estimate:
    urls: Interval
    """URLs that links lead to, whatever their answer."""
    pages: Interval
    """URLs that answer with 200."""
    seen: int
    """Distinct URLs that walks saw: a lower bound."""
    walks: int
    fetches: int


class WalkArrays:
    """The steps of walks as arrays; raises ConfigError for fewer than `WALKS_MIN` walks, or only seeds."""

    def __init__(self, steps: Sequence[WalkStep]) -> None:
        names = sorted({step.walk for step in steps})
        if len(names) < WALKS_MIN:
            raise ConfigError(f"there are {len(names)} walks: an estimate needs at least {WALKS_MIN}")
        self.steps = steps
        self.count = len(names)
        number_of = {name: number for number, name in enumerate(names)}
        walk = np.array([number_of[step.walk] for step in steps])
        sizes = np.array([len(step.links) for step in steps])
        linked = np.array([key for step in steps for key in step.links], dtype=np.uint64)
        asked = self._asked_keys = np.array([step.asked for step in steps], dtype=np.uint64)
        found = np.array([step.found for step in steps], dtype=np.uint64)
        _, ids = np.unique(np.concatenate((linked, asked, found)), return_inverse=True)
        self.seen = int(ids.max()) + 1
        ends = np.cumsum((len(linked), len(asked)))
        self._linked, self._asked, _ = np.split(ids, ends)
        link_walk = np.repeat(walk, sizes)
        pairs = np.unique(np.concatenate((link_walk, walk, walk)) * self.seen + ids)
        self._saw, self._saw_group = pairs % self.seen, pairs // self.seen % GROUPS
        self._mass = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
        self._link_group, self._group = link_walk % GROUPS, walk % GROUPS
        self._is_page = np.array([step.is_page for step in steps], dtype=bool)
        self._is_draw = np.array([step.step > 0 for step in steps], dtype=bool)
        if not self._is_draw.any():
            raise ConfigError("no walk went beyond its seed: none of the seeds has a page with links")

    def estimate(self) -> Estimate:
        walks = [int((np.arange(self.count) % GROUPS != group).sum()) for group in range(GROUPS)]
        whole = np.array(self._size_estimates(None, self.count))
        parts = np.array([self._size_estimates(group, walks[group]) for group in range(GROUPS)])
        return Estimate(
            _jackknife_interval(whole[:2], parts[:, :2]),
            _jackknife_interval(whole[2:], parts[:, 2:]),
            seen=self.seen,
            walks=self.count,
            fetches=len(self.steps),
        )

    @property
    def page_keys(self) -> npt.NDArray[np.uint64]:
        return np.unique(self._asked_keys[self._is_page & self._is_draw])

    def coverage(self, keys: npt.NDArray[np.uint64]) -> Share:
        """Return the share of all pages that are among these, with Wilson's interval.

        The share is the grouped jackknife's, because pages that are easily met weigh too much otherwise: the link that
        led to a page is always among those that were seen. The number of pages of the interval is what a uniform sample
        would have had with the jackknife's error; with all pages or none, with the unequal weights.
        """
        is_there = np.isin(self._asked_keys, keys)
        whole, pages = self._covered_share(None, is_there)
        shares = np.array([self._covered_share(group, is_there)[0] for group in range(GROUPS)])
        value = min(max(GROUPS * whole - (GROUPS - 1) * float(shares.mean()), 0.0), 1.0)
        error = float(np.sqrt((GROUPS - 1) / GROUPS * np.square(shares - shares.mean()).sum()))
        if _SURE < whole < 1 - _SURE and error > 0:
            pages = min(pages, whole * (1 - whole) / error**2)
        else:
            value = round(whole)
        return _wilson_interval(value, max(pages, 1.0))

    def _covered_share(self, without: int | None, is_there: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Return the share, and the number of equally weighted pages with the same precision."""
        weights = np.where(self._is_page, self._weights_without(without), 0.0)
        total = max(weights.sum(), 1e-300)
        _, at = np.unique(self._asked, return_inverse=True)
        of_page = np.bincount(at, weights)
        return float(weights[is_there].sum() / total), float(total**2 / max(np.square(of_page).sum(), 1e-300))

    def weights(self) -> Floats:
        """Return the weight of each step, 0 to 1; seeds have 0."""
        return self._weights_without(None)

    def _weights_without(self, without: int | None) -> Floats:
        kept = slice(None) if without is None else self._link_group != without
        mass = np.bincount(self._linked[kept], self._mass[kept], self.seen)[self._asked]
        drawn = self._is_draw & (mass > 0) & (True if without is None else self._group != without)
        weights: Floats = np.divide(1.0, mass, out=np.zeros(len(mass)), where=drawn)
        weights /= weights.max(initial=1e-300)
        return weights

    def _size_estimates(self, without: int | None, walks: int) -> tuple[float, float, float, float]:
        """Return the low and high estimates of URLs, and of pages."""
        saw = self._saw if without is None else self._saw[self._saw_group != without]
        times = np.bincount(np.bincount(saw, minlength=self.seen), minlength=3)
        seen, once, twice = float(times[1:].sum()), float(times[1]), float(times[2])
        low, high = seen + (walks - 1) / walks * once * (once - 1) / (2 * (twice + 1)), seen + 2 * once - twice
        weights = self._weights_without(without)
        share = weights[self._is_page].sum() / max(weights.sum(), 1e-300)
        return low, high, low * float(share), high * float(share)


def sample_pages(walks: WalkArrays, count: int, dice: random.Random) -> list[WalkStep]:
    """Return `count` distinct pages, drawn by the total weight of their steps (Efraimidis and Spirakis 2006).

    Draw at most a tenth: a larger share reflects the fetching more than the web.
    """
    weight_of: dict[int, float] = {}
    step_of: dict[int, WalkStep] = {}
    for step, weight in zip(walks.steps, walks.weights().tolist(), strict=True):
        if step.is_page and weight:
            weight_of[step.asked] = weight_of.get(step.asked, 0.0) + weight
            step_of.setdefault(step.asked, step)
    waits = {key: dice.expovariate(weight) for key, weight in weight_of.items()}
    return [step_of[key] for key in sorted(waits, key=waits.__getitem__)[:count]]


def _jackknife_interval(whole: Floats, parts: Floats) -> Interval:
    if (whole <= 0).any() or (parts <= 0).any():
        return Interval(float(whole.mean()), 0.0, float("inf"))
    errors = _T_95 * (GROUPS * np.log(whole) - (GROUPS - 1) * np.log(parts)).std(axis=0, ddof=1) / GROUPS**0.5
    return Interval(float(whole.mean()), float((whole * np.exp(-errors)).min()), float((whole * np.exp(errors)).max()))


def _wilson_interval(value: float, pages: float) -> Share:
    spread = _T_95**2 / pages
    middle = (value + spread / 2) / (1 + spread)
    half = (spread * value * (1 - value) + spread**2 / 4) ** 0.5 / (1 + spread)
    return Share(value, max(0.0, min(middle - half, value)), min(1.0, max(middle + half, value)))
