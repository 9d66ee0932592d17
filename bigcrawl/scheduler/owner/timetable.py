"""When partitions are to be looked at again: a heap of times."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T", bound="Hashable")

ENTRIES_MIN = 1_024  # with more entries, and more than four for each that has a time, outdated ones are removed


class Timetable(Generic[T]):
    """One time for each partition that has any, on the monotonic clock. Cost: 1 us for each change."""

    def __init__(self) -> None:
        self._times: dict[T, int] = {}
        self._heap: list[tuple[int, int, T]] = []  # an entry is outdated once its partition has another time

    def __repr__(self) -> str:
        return f"<Timetable of {len(self._times)}>"

    def note(self, each: T, due_ms: int) -> None:
        """Replace the time of a partition; `NEVER_MS` for none."""
        if due_ms >= NEVER_MS:
            self._times.pop(each, None)
        elif self._times.get(each) != due_ms:
            self._times[each] = due_ms
            heappush(self._heap, (due_ms, id(each), each))
            if len(self._heap) > max(ENTRIES_MIN, 4 * len(self._times)):
                self._heap = [(due_ms, id(each), each) for each, due_ms in self._times.items()]
                heapify(self._heap)

    @property
    def next_ms(self) -> int:
        """The earliest time; `NEVER_MS` without any."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER_MS

    def take(self, upto_ms: float, most: int | None = None) -> list[T]:
        """Take out the partitions whose time has come, earliest first; not more than `most`."""
        taken: list[T] = []
        while self.next_ms <= upto_ms and len(taken) != most:
            each = heappop(self._heap)[2]
            del self._times[each]
            taken.append(each)
        return taken

    def keep(self, is_kept: Callable[[T], bool]) -> None:
        """Forget all others."""
        self._times = {each: due_ms for each, due_ms in self._times.items() if is_kept(each)}

    def take_all(self) -> list[T]:
        """Take out all of them."""
        taken = list(self._times)
        self._times.clear()
        self._heap.clear()
        return taken
