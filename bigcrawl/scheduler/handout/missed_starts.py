"""URLs that have missed the starts they were granted (step 11). Fetched late, they would crowd the next start."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from bigcrawl.scheduler.records.held import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.records.held import HeldUrl

ASKING_MAX: Final = 16  # at a time


class MissedStarts:
    """Buffered URLs that are late, and URLs that ask for another start.

    Attributes:
        late: those that have not asked yet, oldest first.
    """

    def __init__(self, ask_again: Callable[[HeldUrl], None]) -> None:
        """Take whom to ask for another start; the URL is admitted again with it, or given back."""
        self._ask_again = ask_again
        self._asking: set[HeldUrl] = set()
        self.late: deque[HeldUrl] = deque()

    def __repr__(self) -> str:
        return f"<MissedStarts late={len(self.late)} asking={len(self._asking)}>"

    def put(self, held: HeldUrl) -> None:
        """A buffered URL is late."""
        self.late.append(held)

    def clear(self) -> None:
        """Forget the late ones: they are given back."""
        self.late.clear()

    def is_asking(self, held: HeldUrl) -> bool:
        """Whether a URL has asked for another start, and was not admitted since."""
        return held in self._asking

    def note_admitted(self, held: HeldUrl) -> None:
        """A URL has its other start."""
        self._asking.discard(held)

    def ask(self, now_ms: int, room: int) -> None:
        """Have late URLs ask for other starts, as far as `room` fetches may start now.

        No more of them ask at a time, for their starts would be missed again. Others do not wait for them.
        """
        self._asking = {each for each in self._asking if each.stage is Stage.WAITING}
        room = min(ASKING_MAX, room) - len(self._asking)
        while self.late and room > 0:
            held = self.late.popleft()
            if held.stage is Stage.BUFFERED:
                held.ask_again(now_ms)
                self._asking.add(held)
                self._ask_again(held)
                room -= 1
