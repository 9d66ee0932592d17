"""Finds the partitions of a node that have due hosts, earliest first, without a scan."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


ENTRIES_MIN = 1_024  # above this and eight per partition, outdated entries are removed

NEVER_MS: Final = 1 << 62


class Due(Protocol):
    @property
    def due_ms(self) -> int: ...


D = TypeVar("D", bound=Due)


class DueHeap(Generic[D]):
    """A heap of partitions by due time. An entry is outdated once its partition's due time changes."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, D]] = []
        self._entries_max = ENTRIES_MIN

    def add_partition(self, partition: D) -> None:
        heappush(self._heap, (partition.due_ms, id(partition), partition))
        if len(self._heap) > self._entries_max:
            current = {each: (due_ms, number, each) for due_ms, number, each in self._heap if due_ms == each.due_ms}
            self._heap = list(current.values())
            heapify(self._heap)
            self._entries_max = max(ENTRIES_MIN, 8 * len(self._heap))

    def has_due(self, until_ms: int) -> bool:
        return self.next_ms <= until_ms

    @property
    def next_ms(self) -> int:
        heap = self._heap
        while heap and heap[0][0] != heap[0][2].due_ms:
            heappop(heap)
        return heap[0][0] if heap else NEVER_MS

    def take_due(self, until_ms: int) -> Iterator[D]:
        """Take out the due partitions, earliest first. Each stays out until it is noted again."""
        taken = set()
        while self._heap and self._heap[0][0] <= until_ms:
            due_ms, _, partition = heappop(self._heap)
            if due_ms == partition.due_ms and partition not in taken:
                taken.add(partition)
                yield partition
