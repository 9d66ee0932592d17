"""The starts that a node was granted and has not used: decisions only; clock and grants are the caller's.

The crawl's speed is kept in Redis, where every node gets start times ahead (`grant_starts.lua`). A fetch may start
when the time of the oldest permit has come. A permit that was not used in time goes back, so that another node, or a
later fetch, has it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.politeness.speed_plan import UNLIMITED

if TYPE_CHECKING:
    from bigcrawl.politeness.speed_plan import Speed

HORIZON_MS = 500
"""Permits are granted for at most so long ahead: what a change of the speed leaves over is used up by then."""

ASK_MS = 200
"""Between two askings of a node that wants starts."""

KEPT_MS = 500
"""What a node could not use for so long goes back."""

BODY_BYTES_FIRST = 20_000
"""What a page is thought to weigh before any came."""

_WEIGHT = 0.05  # of the latest page in the mean: that of the last twenty


class StartPermits:
    """One node's share of the crawl's speed, as it comes.

    Attributes:
        speed: of the whole crawl, now.
        body_bytes: mean weight of a fetch, which each start is charged with.
    """

    def __init__(self) -> None:
        self.speed: Speed = UNLIMITED
        self.body_bytes = float(BODY_BYTES_FIRST)
        self._starts: deque[float] = deque()
        self._debt_bytes = 0.0
        self._given_back = 0
        self._owed = 0

    def __len__(self) -> int:
        return len(self._starts)

    def __repr__(self) -> str:
        return f"<StartPermits {self.speed} unused={len(self._starts)}>"

    def set_speed(self, speed: Speed) -> bool:
        """Go by another speed from now on; whether it is another. Permits of the old one are void."""
        if speed == self.speed:
            return False
        self.speed = speed
        self._starts.clear()
        self._given_back = self._owed = 0
        self._debt_bytes = 0.0
        return True

    def may_start(self, now_ms: float) -> bool:
        """Whether a fetch may start now."""
        return not self.speed.is_limited or (bool(self._starts) and self._starts[0] <= now_ms)

    def use(self) -> None:
        """A fetch starts."""
        if self._starts:
            self._starts.popleft()

    def owe(self) -> None:
        """A fetch starts that cannot wait: the next permit pays for it."""
        if self._starts:
            self._starts.pop()
        else:
            self._owed += 1

    def wait_ms(self, now_ms: float) -> float | None:
        """How long until a fetch may start; None when no permit is here."""
        return max(0.0, self._starts[0] - now_ms) if self._starts else None

    def grant(self, first_ms: float, step_ms: float, count: int) -> None:
        """Take permits, on the caller's clock."""
        paid = min(self._owed, count)
        self._owed -= paid
        self._starts.extend(first_ms + step_ms * at for at in range(paid, count))

    def note_ended(self, body_bytes: int) -> None:
        """A fetch brought so many bytes: what they are more than it was charged with is charged now."""
        self._debt_bytes += body_bytes - self.body_bytes
        self.body_bytes = max(1.0, (1 - _WEIGHT) * self.body_bytes + _WEIGHT * body_bytes)

    def wanted(self, now_ms: float, ready: int) -> int:
        """How many permits to ask for, with so many fetches ready; what is too old is put aside to go back."""
        while self._starts and self._starts[0] < now_ms - KEPT_MS:
            self._starts.popleft()
            self._given_back += 1
        if self.speed.is_paused:
            return 0
        most = math.ceil(HORIZON_MS / self.step_ms) + 1
        return max(0, min(ready + self._owed, most) - len(self._starts))

    def take_given_back(self) -> int:
        """Permits that go back; the caller sees to it."""
        given_back, self._given_back = self._given_back, 0
        return given_back

    def take_debt_bytes(self) -> float:
        """Bytes to charge besides those of starts; negative when fetches brought less."""
        debt, self._debt_bytes = self._debt_bytes, 0.0
        return debt

    @property
    def page_ms(self) -> float:
        """Milliseconds of the crawl's time that a start takes, by pages a second; 0 without such a limit."""
        return 1000 / self.speed.pages

    @property
    def bytes_ms(self) -> float:
        """The same by bytes a second."""
        return 1000 * self.body_bytes / self.speed.body_bytes

    @property
    def step_ms(self) -> float:
        """Between two starts of the whole crawl; never 0."""
        return max(self.page_ms, self.bytes_ms, 1e-6)
