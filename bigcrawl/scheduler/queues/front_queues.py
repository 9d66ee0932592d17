"""The front queues (step 6 of a URL's life): one on disk for each priority level, and the biased selector over them.

Levels 0 to 4 hold ordinary URLs by priority. Each further group of five levels does the same for a tier of extra URLs,
and is read when all levels below it are empty.

Source: Mercator's front queues and biased selector (Najork & Heydon 2001).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from bigcrawl.scheduler.budgets.placement import TIERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.queues.fifo import Fifo
    from bigcrawl.scheduler.queues.named_queues import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# Lowest priority of each level except the first: below zero, ordinary, raised, high, urgent.
_LEVEL_STARTS = (0, 1, 10, 100)
LEVELS = len(_LEVEL_STARTS) + 1

BIAS = 2
"""The ratio of a level's share to that of the level below it."""


def level_of(priority: int) -> int:
    """Return the level of a priority: 0 (below zero), 1 (0), 2 (1..9), 3 (10..99), 4 (from 100)."""
    return bisect_right(_LEVEL_STARTS, priority)


class Selector:
    """Smooth weighted round robin: chooses the level that is furthest behind its share.

    The credits are part of the manifest, so a repeated fold makes the same choices.
    """

    def __init__(self, balance: Iterable[int] = (0,) * LEVELS, bias: int = BIAS) -> None:
        self._weights = [bias**level for level in range(LEVELS)]
        self._credits = list(balance)
        if max(map(abs, self._credits)) > sum(self._weights):  # from another bias; they would never even out
            self._credits = [0] * LEVELS

    @property
    def credits(self) -> tuple[int, ...]:
        return tuple(self._credits)

    def fork(self) -> Selector:
        return Selector(self._credits, self._weights[1])

    def choose(self, levels: Sequence[int]) -> int:
        if len(levels) == 1:
            return levels[0]
        for level in levels:
            self._credits[level] += self._weights[level]
        best = max(levels, key=lambda level: (self._credits[level], level))
        self._credits[best] -= sum(self._weights[level] for level in levels)
        return best


class FrontQueues:
    def __init__(self, queues: Queues, prefix: str, selector: Selector) -> None:
        self._queues = queues
        self._prefix = prefix
        self._levels: dict[int, Fifo] = {}
        for level in range(TIERS * LEVELS):
            if self._name(level) in queues.names:
                self._levels[level] = queues[self._name(level)]
        self.selector = selector

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
                if level < LEVELS:
                    return False
                has_extra = True
        return has_extra

    def counts(self) -> tuple[int, ...]:
        return tuple(self._queues.waiting(self._name(level)) for level in range(TIERS * LEVELS))

    def waiting_by_level(self) -> dict[int, int]:
        return {level: queue.waiting for level, queue in self._levels.items() if queue.waiting}

    def extend(self, urls: Iterable[QueuedUrl]) -> None:
        levels = self._levels
        for url in urls:
            level = level_of(url.priority)
            if level in levels:
                levels[level].append(url)
            else:
                self.append_at(level, url)

    def append_at(self, level: int, url: QueuedUrl) -> None:
        queue = self._levels.get(level)
        if queue is None:
            queue = self._levels[level] = self._queues[self._name(level)]
        queue.append(url)

    def put_back(self, tiers: Iterable[int], urls: Iterable[QueuedUrl]) -> None:
        for tier, url in zip(tiers, urls, strict=True):
            self.append_at(level_of(url.priority) + LEVELS * tier, url)

    def choose_level(self) -> int | None:
        levels = [level for level, queue in self._levels.items() if queue.waiting]
        if len(levels) == 1:
            return levels[0]
        if not levels:
            return None
        tier = min(levels) // LEVELS
        return tier * LEVELS + self.selector.choose([level % LEVELS for level in levels if level // LEVELS == tier])

    def remove(self) -> None:
        for level in self._levels:
            self._queues.remove(self._name(level))
        self._levels.clear()

    def _name(self, level: int) -> str:
        return f"{self._prefix}-{level}"
