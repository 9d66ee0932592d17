from __future__ import annotations

from heapq import heapify, heappop, heappush

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS

ENTRIES_MIN = 1_024  # above this and four per partition, outdated entries are removed


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
