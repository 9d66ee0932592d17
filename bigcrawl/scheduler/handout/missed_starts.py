"""URLs that have missed their starts (step 11). If they were fetched late, the next start would be too close."""

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
        """`ask_again` asks for another start: then the URL is admitted again, or given back."""
        self._ask_again = ask_again
        self._asking: set[HeldUrl] = set()
        self.late: deque[HeldUrl] = deque()

    def __repr__(self) -> str:
        return f"<MissedStarts late={len(self.late)} asking={len(self._asking)}>"

    def put(self, held: HeldUrl) -> None:
        """A buffered URL is late."""
        self.late.append(held)

    def clear(self) -> None:
        """Forget the late ones, which are given back."""
        self.late.clear()

    def is_asking(self, held: HeldUrl) -> bool:
        """Whether a URL has asked for another start and has not been admitted since."""
        return held in self._asking

    def note_admitted(self, held: HeldUrl) -> None:
        """A URL has its other start."""
        self._asking.discard(held)

    def ask(self, now_ms: int, room: int) -> None:
        """Have late URLs ask for other starts: as many as `room`, the fetches that may start now.

        If more asked at a time, they would miss those starts too. Other URLs do not wait for them.
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
