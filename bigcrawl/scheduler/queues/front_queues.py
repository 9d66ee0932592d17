"""The front queues (step 6 of a URL's life): one on disk for each priority level, and the biased selector over them.

With F levels, 0 to F - 1 hold ordinary URLs by priority. Each further group of F levels does the same for a tier of
extra URLs, and is read when all levels below it are empty. Behind them come queues of another F, from before a restart:
a step moves a portion of their URLs to the levels, and they are read when all levels are empty.

Source: Mercator's front queues and biased selector (Najork & Heydon 2001).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.budgets.placement import TIERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.queues.fifo import Fifo, Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

URGENT = 100
"""The lowest priority of the highest level."""

LEVELS = 5
"""As many as the front queues by default: below zero, ordinary, raised, high, urgent."""

BIAS = 2
"""The ratio of a level's share to that of the level below it."""

_WEIGHT_MAX = 1 << 48  # so that credits have 64 bits
_FRACTION = 1 << 10  # makes weights whole if the bias is not


class Levels(NamedTuple):
    """The levels of F front queues.

    Attributes:
        starts: the lowest priority of each level except the first.
        older: other numbers of levels, by which queues of earlier runs are named.
    """

    starts: tuple[int, ...]
    older: frozenset[int] = frozenset()

    @classmethod
    def of_number(cls, number: int) -> Levels:
        """Return the levels of 1 to 64 queues.

        One has no levels; two separate raised URLs from others; three also those below zero; the levels above start at
        equal ratios from 1 to `URGENT`.
        """
        if number <= 3:
            return cls((0, 1)[3 - number :] if number > 1 else ())
        starts = [0]
        for place in range(number - 2):
            starts.append(max(starts[-1] + 1, round(URGENT ** (place / (number - 3)))))
        return cls(tuple(starts))

    @property
    def number(self) -> int:
        return len(self.starts) + 1

    def of(self, priority: int) -> int:
        return bisect_right(self.starts, priority)


_BY_DEFAULT = Levels.of_number(LEVELS)


def level_of(priority: int) -> int:
    """Return the level among five: 0 (below zero), 1 (0), 2 (1..9), 3 (10..99), 4 (from 100)."""
    return _BY_DEFAULT.of(priority)


def queue_name(prefix: str, level: int, number: int) -> str:
    """Return the name of a queue of `number` levels; names omit 5, the number of levels in earlier versions."""
    return f"{prefix}-{level}" if number == LEVELS else f"{prefix}-{level}of{number}"


def level_in(written: str) -> tuple[int, int]:
    """Return the level at the end of a queue's name, and the number of levels."""
    level, _, number = written.partition("of")
    return int(level), int(number or LEVELS)


class Selector:
    """Smooth weighted round robin over levels; the manifest has its credits, so a repeated fold chooses the same."""

    def __init__(
        self, balance: Iterable[int] = (0,) * LEVELS, bias: float = BIAS, levels: Levels = _BY_DEFAULT
    ) -> None:
        self.levels = levels
        self._bias = bias
        self._weights = weights_of(bias, levels.number)
        self._credits = list(balance)
        is_odd = len(self._credits) != levels.number or max(map(abs, self._credits)) > sum(self._weights)
        if is_odd:  # from another bias or number of levels; they would never even out
            self._credits = [0] * levels.number

    @property
    def credits(self) -> tuple[int, ...]:
        return tuple(self._credits)

    def fork(self) -> Selector:
        return Selector(self._credits, self._bias, self.levels)

    def with_older_levels(self, older: Iterable[int]) -> Selector:
        return Selector(self._credits, self._bias, self.levels._replace(older=frozenset(older)))

    def choose(self, levels: Sequence[int]) -> int:
        if len(levels) == 1:
            return levels[0]
        for level in levels:
            self._credits[level] += self._weights[level]
        best = max(levels, key=lambda level: (self._credits[level], level))
        self._credits[best] -= sum(self._weights[level] for level in levels)
        return best


def weights_of(bias: float, number: int) -> list[int]:
    """Return the whole weights of levels, each `bias` times that of the level below, at most `_WEIGHT_MAX`."""
    unit = 1 if float(bias).is_integer() else _FRACTION
    exact = [unit * (int(bias) if unit == 1 else bias) ** level for level in range(number)]
    if exact[-1] <= _WEIGHT_MAX:
        return [round(weight) for weight in exact]
    return [max(1, round(_WEIGHT_MAX * bias ** (level - number + 1))) for level in range(number)]


class FrontQueues:
    def __init__(self, queues: Queues, prefix: str, selector: Selector) -> None:
        self._queues = queues
        self._prefix = prefix
        self._number = number = selector.levels.number
        self._levels: dict[int, Fifo] = {}
        for level in range(TIERS * number):
            if self._name(level) in queues.names:
                self._levels[level] = queues[self._name(level)]
        self._older: dict[int, tuple[str, int]] = {}
        for other in selector.levels.older:
            self._add_older(other)
        self.selector = selector

    def _add_older(self, number: int) -> None:
        for level in range(TIERS * number):
            name = queue_name(self._prefix, level, number)
            if name in self._queues.names:
                place = TIERS * self._number + len(self._older)
                self._older[place] = name, level // number
                self._levels[place] = self._queues[name]

    def tier_of(self, level: int) -> int:
        return self._older[level][1] if level in self._older else level // self._number

    def are_older(self, level: int) -> bool:
        return level in self._older

    def __len__(self) -> int:
        return self.waiting

    def __repr__(self) -> str:
        return f"<FrontQueues {self._prefix} waiting={self.counts()}>"

    @property
    def waiting(self) -> int:
        return sum(queue.waiting for queue in self._levels.values())

    @property
    def queues(self) -> Mapping[int, Fifo]:
        return self._levels

    @property
    def has_only_extra(self) -> bool:
        has_extra = False
        for level, queue in self._levels.items():  # a loop, because a step calls this before each URL
            if queue.waiting:
                if level < self._number or (self._older and not self.tier_of(level)):
                    return False
                has_extra = True
        return has_extra

    def counts(self) -> tuple[int, ...]:
        return tuple(self._queues.waiting(self._name(level)) for level in range(TIERS * self._number))

    def waiting_by_level(self) -> dict[int, int]:
        return {level: queue.waiting for level, queue in self._levels.items() if queue.waiting}

    def extend(self, urls: Iterable[QueuedUrl]) -> None:
        level_of = self.selector.levels.of
        for url in urls:
            self.queue_at(level_of(url.priority)).append(url)

    def queue_at(self, level: int) -> Fifo:
        queue = self._levels.get(level)
        if queue is None:
            queue = self._levels[level] = self._queues[self._name(level)]
        return queue

    def put_back(self, tiers: Iterable[int], urls: Iterable[QueuedUrl]) -> None:
        for tier, url in zip(tiers, urls, strict=True):
            self.queue_at(self.selector.levels.of(url.priority) + self._number * tier).append(url)

    def choose_level(self, *, urgent_only: bool = False) -> int | None:
        levels = [level for level, queue in self._levels.items() if queue.waiting]
        if self._older and len(levels) > 1:
            levels = [level for level in levels if level not in self._older] or levels[:1]
        number = self._number
        if urgent_only:
            levels = [level for level in levels if level % number == number - 1 and level not in self._older]
        if len(levels) == 1:
            return levels[0]
        if not levels:
            return None
        tier = min(levels) // number
        return tier * number + self.selector.choose([level % number for level in levels if level // number == tier])

    def remove(self) -> None:
        for level in self._levels:
            self._queues.remove(self._older[level][0] if level in self._older else self._name(level))
        self._levels.clear()
        self._older.clear()

    def _name(self, level: int) -> str:
        return queue_name(self._prefix, level, self._number)
