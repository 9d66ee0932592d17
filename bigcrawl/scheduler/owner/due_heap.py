"""Which partition to ask next: those of a node by when one of their hosts may be taken, earliest first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


ENTRIES_MIN = 1_024  # beyond it, or eight of each partition, those that say something old are thrown away

NEVER_MS: Final = 1 << 62
"""Later than any moment."""


class Due(Protocol):
    """What is due at some time."""

    @property
    def due_ms(self) -> int:
        """When, on the monotonic clock."""


D = TypeVar("D", bound=Due)


class DueHeap(Generic[D]):
    """A heap of partitions; an entry holds as long as its partition is due when it says.

    Cost: 1 us a change and a partition taken out. To look at each of 256 partitions took 100 us a round trip.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, D]] = []
        self._entries_max = ENTRIES_MIN

    def __repr__(self) -> str:
        return f"<DueHeap entries={len(self._heap)}>"

    def note(self, partition: D) -> None:
        """The partition is due at another time than before, or is to be asked again."""
        heappush(self._heap, (partition.due_ms, id(partition), partition))
        if len(self._heap) > self._entries_max:
            holding = {each: (due_ms, number, each) for due_ms, number, each in self._heap if due_ms == each.due_ms}
            self._heap = list(holding.values())
            heapify(self._heap)
            self._entries_max = max(ENTRIES_MIN, 8 * len(self._heap))

    def has_due(self, until_ms: int) -> bool:
        """Whether a partition may be due by then; False is sure."""
        return bool(self._heap) and self._heap[0][0] <= until_ms

    def take(self, until_ms: int) -> Iterator[D]:
        """Take out the partitions that are due by then, earliest first; each once, and gone until it is noted again."""
        taken = set()
        while self._heap and self._heap[0][0] <= until_ms:
            due_ms, _, partition = heappop(self._heap)
            if due_ms == partition.due_ms and partition not in taken:
                taken.add(partition)
                yield partition
