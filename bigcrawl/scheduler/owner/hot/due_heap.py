"""Finds a node's partitions with due hosts, earliest first, without a scan, and how many URLs to ask each for."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRIES_MIN = 1_024  # above this and a few per partition, outdated entries are removed

NEVER_MS: Final = 1 << 62

TAKE_FIRST = 4
TAKE_MAX = 64


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
        """Remove and return the due partitions, earliest first. Each stays out until it is added again."""
        taken = set()
        while self._heap and self._heap[0][0] <= until_ms:
            due_ms, _, partition = heappop(self._heap)
            if due_ms == partition.due_ms and partition not in taken:
                taken.add(partition)
                yield partition


class TakenFromPartition:
    """The base class of a partition that URLs are taken from.

    Attributes:
        due_ms: when a host may next be taken, monotonic; `NEVER_MS` if no URL waits.
        take_share: how many URLs to ask for, about as many as its due hosts have.
    """

    def __init__(self, due_heap: DueHeap[Any], due_ms: int) -> None:
        self._due_heap = due_heap
        self.due_ms = NEVER_MS
        self._due_by_ms = NEVER_MS
        self.take_share = TAKE_FIRST
        self.record_due(due_ms)

    def record_due(self, due_ms: int) -> None:
        if due_ms != self.due_ms:
            self.due_ms = due_ms
            if due_ms < NEVER_MS:
                self._due_heap.add_partition(self)

    def record_asked(self) -> None:
        """Begin a request to Redis. Its reply does not cover due times recorded from now on."""
        self._due_by_ms = NEVER_MS

    def record_answer(self, due_ms: int) -> None:
        self.record_due(min(due_ms, self._due_by_ms))

    def record_due_by(self, due_ms: int) -> None:
        self._due_by_ms = min(self._due_by_ms, due_ms)
        if due_ms < self.due_ms:
            self.due_ms = due_ms
            self._due_heap.add_partition(self)

    def record_take(self, asked: int, given: int, *, is_more_due: bool) -> None:
        """Adapt the share to a reply, to make few calls and reserve little room in vain."""
        self.take_share = min(TAKE_MAX, 2 * asked) if is_more_due and given == asked else max(1, given)


class Timetable:
    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []  # outdated once its partition has another time
        self._entries_max = ENTRIES_MIN

    def set_time(self, partition: int, due_ms: int) -> None:
        """Replace the time of a partition; `NEVER_MS` or later for none."""
        if due_ms >= NEVER_MS:
            self._times.pop(partition, None)
        elif self._times.get(partition) != due_ms:
            self._times[partition] = due_ms
            heappush(self._heap, (due_ms, partition))
            if len(self._heap) > self._entries_max:
                self._heap = [(due_ms, partition) for partition, due_ms in self._times.items()]
                heapify(self._heap)
                self._entries_max = max(ENTRIES_MIN, 4 * len(self._heap))

    @property
    def next_ms(self) -> int:
        heap = self._heap
        while heap and self._times.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else NEVER_MS

    def take_due(self, upto_ms: float) -> list[int]:
        taken: list[int] = []
        while self.next_ms <= upto_ms:
            taken.append(heappop(self._heap)[1])
            del self._times[taken[-1]]
        return taken

    def take_all(self) -> list[int]:
        taken = list(self._times)
        self._times.clear()
        self._heap.clear()
        return taken
