"""Finds URLs to score again: the current turn's in batches, one per step; those of a later turn when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.queues.front_queues import FrontQueues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_RESCORED_BYTES = 16 << 20


class RescoringRound:
    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        self._outdated: frozenset[int] = frozenset()
        self.rescored_ever = 0

    def fork(self) -> RescoringRound:
        other = RescoringRound()
        other._left, other._outdated, other.rescored_ever = self._left.copy(), self._outdated, self.rescored_ever
        return other

    @property
    def is_under_way(self) -> bool:
        return bool(self._left)

    def begin(self, front: FrontQueues, later: Iterable[int], *, older_only: bool = False) -> None:
        """Begin a round. With `older_only`, it covers only the current turn's queues with another number of levels."""
        waiting = front.waiting_by_level()
        self._left = {level: n for level, n in waiting.items() if not older_only or front.are_older(level)}
        self._outdated = frozenset(later)

    def record_turn(self, turn: int, front: FrontQueues) -> None:
        self._left = front.waiting_by_level() if turn in self._outdated else {}

    def next_urls(self, front: FrontQueues, limit: int) -> list[tuple[int, QueuedUrl]]:
        """Remove and return up to `limit` URLs of the front queues, each with its tier. All must be put back."""
        found: list[tuple[int, QueuedUrl]] = []
        bytes_left = _RESCORED_BYTES
        for level in sorted(self._left, reverse=True):
            queue, tier = front.queues[level], front.tier_of(level)
            left = min(self._left.pop(level), queue.waiting)
            while left and len(found) < limit and bytes_left > 0:
                found.append((tier, queue.pop()))
                bytes_left -= len(found[-1][1].body)
                left -= 1
            if left:
                self._left[level] = left
                break
        self.rescored_ever += len(found)
        return found
