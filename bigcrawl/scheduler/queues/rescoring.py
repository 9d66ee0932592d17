"""Which URLs in turns are to be scored again, because scores have changed (step 6).

Those of the current turn come a portion in each step, by which each front queue moves once from its head to the ends of
the queues; those of a later turn when it begins. How far this has come is in memory only: an owner that opens the
partition begins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.queues.front_queues import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.queues.front_queues import FrontQueues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_RESCORED_BYTES = 16 << 20


class Rescoring:
    """How far scoring again has come.

    Attributes:
        rescored_ever: how many URLs this owner has scored again.
    """

    def __init__(self) -> None:
        self._left: dict[int, int] = {}  # how many URLs from the head of each front queue
        self._outdated: frozenset[int] = frozenset()  # later turns with such URLs
        self.rescored_ever = 0

    def __repr__(self) -> str:
        return f"<Rescoring left={self._left} turns={len(self._outdated)}>"

    def fork(self) -> Rescoring:
        """Return a copy to change. This one stays as it is."""
        other = Rescoring()
        other._left, other._outdated, other.rescored_ever = self._left.copy(), self._outdated, self.rescored_ever
        return other

    @property
    def is_under_way(self) -> bool:
        """Whether URLs of the current turn are still to be scored again."""
        return bool(self._left)

    def begin(self, front: FrontQueues, later: Iterable[int]) -> None:
        """Scores have changed: have all URLs scored again that wait in the front queues and in `later` turns."""
        self._left = front.waiting_by_level()
        self._outdated = frozenset(later)

    def note_turn(self, turn: int, front: FrontQueues) -> None:
        """A turn has become the current one, with these front queues."""
        self._left = front.waiting_by_level() if turn in self._outdated else {}

    def next_urls(self, front: FrontQueues, limit: int) -> list[tuple[int, QueuedUrl]]:
        """Remove and return up to `limit` URLs of the front queues, each with its tier. All must be put back.

        They are fewer if their bodies are large, so that memory holds no more than 16 MB and one body.
        """
        found: list[tuple[int, QueuedUrl]] = []
        bytes_left = _RESCORED_BYTES
        for level in sorted(self._left, reverse=True):
            queue = front.queues[level]
            left = min(self._left.pop(level), queue.waiting)
            while left and len(found) < limit and bytes_left > 0:
                found.append((level // LEVELS, queue.pop()))
                bytes_left -= len(found[-1][1].body)
                left -= 1
            if left:
                self._left[level] = left
                break
        self.rescored_ever += len(found)
        return found
