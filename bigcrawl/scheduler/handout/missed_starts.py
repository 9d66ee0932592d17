from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from bigcrawl.scheduler.records.held import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.records.held import HeldUrl

ASKING_MAX: Final = 16


class MissedStarts:
    """Buffered URLs that are late, oldest first, and URLs sent back to the gates for another start."""

    def __init__(self, ask_again: Callable[[HeldUrl], None]) -> None:
        self._ask_again = ask_again
        self._asking: set[HeldUrl] = set()
        self.late: deque[HeldUrl] = deque()

    def put(self, held: HeldUrl) -> None:
        self.late.append(held)

    def clear(self) -> None:
        self.late.clear()

    def is_asking(self, held: HeldUrl) -> bool:
        return held in self._asking

    def record_admitted(self, held: HeldUrl) -> None:
        self._asking.discard(held)

    def request_new_starts(self, now_ms: int, room: int) -> None:
        """Send late URLs back to the gates, at most as many as can start now, or they would be late again."""
        self._asking = {each for each in self._asking if each.stage is Stage.WAITING}
        room = min(ASKING_MAX, room) - len(self._asking)
        while self.late and room > 0:
            held = self.late.popleft()
            if held.stage is Stage.BUFFERED:
                held.ask_again(now_ms)
                self._asking.add(held)
                self._ask_again(held)
                room -= 1
