"""Faults happen to a crawl until it is over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.support.faults.kinds import KINDS, strike

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.support.faults.world import World

STILL_S = 120.0  # far longer than any rest of a host, with all that is taken over after a lease


class Suffering:
    """Draws faults for a world, and counts by kind those that happened.

    Args:
        most: the number of faults after which there are no more.
        gap_s: between two faults, in the mean.
    """

    def __init__(self, world: World, rng: random.Random, most: int, gap_s: float) -> None:
        self._world = world
        self._rng = rng
        self._most = most
        self._gap_s = gap_s
        self.met: Counter[str] = Counter()

    def meet_each(self, names: Sequence[str]) -> None:
        """Let each of these kinds happen once, in any order; one that cannot happen yet is waited for."""
        for name in self._rng.sample(names, len(names)):
            while not self._is_over() and not self._meet(name):
                pass

    def meet_any(self, names: Sequence[str]) -> None:
        """Let faults of these kinds happen, by their weights, until the crawl is over or there were enough."""
        names = [name for name in names if KINDS[name].is_possible(self._world)]
        weights = [KINDS[name].weight for name in names]
        while not self._is_over():
            self._meet(self._rng.choices(names, weights)[0])

    def end(self) -> Counter[str]:
        """Mend all, and let the crawl come to its end; what happened, by kind."""
        self._world.mend_all()
        self._world.wait_for_end(STILL_S)
        return self.met

    def _is_over(self) -> bool:
        return self.met.total() >= self._most or self._world.is_finished()

    def _meet(self, name: str) -> bool:
        self._world.live(self._rng.expovariate(1 / self._gap_s))
        if self._world.is_finished() or not strike(self._world, name, self._rng):
            return False
        self.met[name] += 1
        return True
