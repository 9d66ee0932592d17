"""Searches for inputs that cost too much: recipes are changed, and those that cost most for their size go on.

A recipe is first tried small. What is among the dearest there, or grows faster than its size, is tried as large as it
may become; what is beyond the bounds then is made as simple as it can be, and told.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.support.costs.corpus import WORDS, bombs_of
from tests.support.costs.genomes import changed, crossed, grown, simpler
from tests.support.costs.targets import BYTES_MAX

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from tests.support.costs.genomes import Genome
    from tests.support.costs.measure import Cost, Measure

CPU_S: Final = 0.5
CPU_S_IN_SLICES: Final = {"sitemap": 1.0}
"""Of 50,000 links that a node wants. They are read in slices: others run in between, and `sitemap_slice` bounds one."""

MEMORY_MB: Final = 200
LOOKS: Final = 8
"""How often an input is tried before it is called too dear: on a busy machine one look may cost a multiple."""

TIMES_USUAL: Final = 12
TIMES_VERY_CHEAP: Final = {"sitemap_slice": 30, "feed": 60, "stored_page": 24}
"""What a known bomb may cost more than a usual input of its size: twice what the dearest does, and no square.

A stored head may have 65,000 lines where a usual one has 200."""
SHARE: Final = 8
"""Large inputs are an eighth as large there."""
LARGE_BYTES: Final = 1 << 20
CHEAP_S: Final = 0.002
"""What costs no more is not compared."""
KEPT: Final = 24
SMALL_BYTES: Final = 32 << 10
SIMPLER_TRIES: Final = 60


class Found(NamedTuple):
    """An input beyond the bounds."""

    target: str
    genome: Genome
    size: int
    cost: Cost

    def __str__(self) -> str:
        pieces = ", ".join(f"{piece.unit!r} share {piece.share}" for piece in self.genome)
        cost = f"{self.cost.cpu_s:.2f} s of CPU and {self.cost.memory_mb:.0f} MiB {self.cost.fault}"
        return f"{self.target} of {self.size} bytes costs {cost}: {pieces}"


def is_too_dear(measure: Measure, cost: Cost) -> bool:
    return cost.cpu_s > CPU_S_IN_SLICES.get(measure.target, CPU_S) or cost.memory_mb > MEMORY_MB


def lowest_cost(measure: Measure, data: bytes) -> Cost:
    """What an input costs; where one look finds too much, the cheapest of several."""
    lowest = measure.cost(data)
    for _ in range(LOOKS - 1):
        if not is_too_dear(measure, lowest):
            break
        lowest = min(lowest, measure.cost(data), key=_rate)
    return lowest


def check(measure: Measure, genome: Genome) -> Found | None:
    """Try an input as large as it may become."""
    size = BYTES_MAX[measure.target]
    cost = lowest_cost(measure, grown(genome, size))
    return Found(measure.target, genome, size, cost) if is_too_dear(measure, cost) else None


def compare(measure: Measure, usual: Genome, genomes: Iterable[Genome]) -> list[Found]:
    """Return those that cost more than so many times what a usual input does, in each of several turns.

    The same process runs usual ones in between: a busy machine slows both.
    """
    whole = BYTES_MAX[measure.target]
    size = whole // SHARE if whole > LARGE_BYTES else whole
    known = grown(usual, size)
    times = TIMES_VERY_CHEAP.get(measure.target, TIMES_USUAL)
    measure.cost(known)
    seen, found = measure.cost(known), []
    assert not seen.fault
    for genome in genomes:
        data = grown(genome, size)
        for _ in range(LOOKS):
            cost = measure.cost(data)
            if cost.cpu_s <= times * max(CHEAP_S, seen.cpu_s) and cost.memory_mb <= MEMORY_MB:
                break
            seen = measure.cost(known)
        else:
            found.append(Found(measure.target, genome, size, cost))
    return found


def search(measure: Measure, dice: random.Random, seconds: float) -> tuple[Found | None, int]:
    """Search for so long; return what is beyond the bounds, as simple as possible, and how many inputs were run."""
    words, size_max = WORDS[measure.target], BYTES_MAX[measure.target]
    small = min(SMALL_BYTES, size_max // 4)
    known = [(_rate(measure.cost(grown(genome, small))), genome) for genome in bombs_of(measure.target)]
    kept = sorted(known, key=lambda one: one[0], reverse=True)
    runs = len(kept)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        parent = dice.choice(kept)[1]
        genome = changed(crossed(parent, dice.choice(kept)[1], dice) if not dice.randrange(4) else parent, words, dice)
        cost = measure.cost(grown(genome, small))
        runs += 1
        rate = _rate(cost)
        if any(rate == other for other, _ in kept) or (len(kept) >= KEPT and rate <= kept[-1][0]):
            continue
        kept = sorted([*kept, (rate, genome)], key=lambda one: one[0], reverse=True)[:KEPT]
        larger = measure.cost(grown(genome, min(size_max, 8 * small)))
        runs += 1
        if _rate(larger) > 12 * rate or rate >= kept[len(kept) // 3][0] or is_too_dear(measure, larger):
            runs += 1
            if found := check(measure, genome):
                return simplest(measure, found), runs
    return None, runs


def simplest(measure: Measure, found: Found) -> Found:
    """The recipe without what it does not need, and the smallest size, by halves, at which it is too dear."""
    tries = SIMPLER_TRIES
    is_simpler = True
    while is_simpler and tries > 0:
        is_simpler = False
        for genome in simpler(found.genome):
            tries -= 1
            cost = lowest_cost(measure, grown(genome, found.size))
            if is_too_dear(measure, cost):
                found, is_simpler = found._replace(genome=genome, cost=cost), True
                break
    while found.size > 1_000:
        size = found.size // 2
        cost = lowest_cost(measure, grown(found.genome, size))
        if not is_too_dear(measure, cost):
            break
        found = found._replace(size=size, cost=cost)
    return found


def _rate(cost: Cost) -> float:
    """One number for both: shares of what is allowed."""
    return cost.cpu_s / CPU_S + max(0.0, cost.memory_mb) / MEMORY_MB
