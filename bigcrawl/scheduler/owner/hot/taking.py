"""When URLs of a partition may next be taken, and how many to ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS

if TYPE_CHECKING:
    from bigcrawl.scheduler.owner.hot.due_heap import DueHeap

TAKE_FIRST = 4
TAKE_MAX = 64


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
        """Begin a request to Redis. Its reply does not cover times noted from now on."""
        self._due_by_ms = NEVER_MS

    def record_answer(self, due_ms: int) -> None:
        self.record_due(min(due_ms, self._due_by_ms))

    def record_due_by(self, due_ms: int) -> None:
        self._due_by_ms = min(self._due_by_ms, due_ms)
        if due_ms < self.due_ms:
            self.due_ms = due_ms
            self._due_heap.add_partition(self)

    def record_take(self, asked: int, given: int, *, is_more_due: bool) -> None:
        """Adapt the share to a reply, so that calls are few and little room is reserved in vain."""
        self.take_share = min(TAKE_MAX, 2 * asked) if is_more_due and given == asked else max(1, given)
