"""When URLs of a partition may next be taken, and how many to ask for (step 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS

if TYPE_CHECKING:
    from bigcrawl.scheduler.owner.hot.due_heap import DueHeap

TAKE_FIRST = 4
TAKE_MAX = 64


class Taking:
    """The base class of a partition that URLs are taken from. Only its methods change these attributes.

    Attributes:
        due_ms: when a host of the partition may next be taken, on the monotonic clock.
        take_share: how many URLs to ask for, about as many as its due hosts have.
    """

    def __init__(self, due_heap: DueHeap[Any], due_ms: int) -> None:
        """Enter the heap, and again whenever the partition becomes due at another time; `NEVER_MS` if no URL waits."""
        self._due_heap = due_heap
        self.due_ms = NEVER_MS
        self._due_by_ms = NEVER_MS  # the earliest time that was noted since Redis was asked last
        self.take_share = TAKE_FIRST
        self.note_due(due_ms)

    def note_due(self, due_ms: int) -> None:
        """Set when the next host is due; `NEVER_MS` if no URL waits."""
        if due_ms != self.due_ms:
            self.due_ms = due_ms
            if due_ms < NEVER_MS:
                self._due_heap.note(self)

    def note_asked(self) -> None:
        """Redis is asked for what is due. Its answer knows of nothing that is noted from here on."""
        self._due_by_ms = NEVER_MS

    def note_answer(self, due_ms: int) -> None:
        """By the answer, the next host is due then; `NEVER_MS` if no URL waits."""
        self.note_due(min(due_ms, self._due_by_ms))

    def note_due_by(self, due_ms: int) -> None:
        """Record that a host is due by this time at the latest."""
        self._due_by_ms = min(self._due_by_ms, due_ms)
        if due_ms < self.due_ms:
            self.due_ms = due_ms
            self._due_heap.note(self)

    def note_take(self, asked: int, given: int, *, is_more_due: bool) -> None:
        """Adapt the share to a reply, so that calls are few, and no room is kept for URLs that do not come."""
        self.take_share = min(TAKE_MAX, 2 * asked) if is_more_due and given == asked else max(1, given)
