"""How fast the whole crawl may go by time of day and weekday, and a node's unused permits to start a fetch.

Permits are granted in advance (`grant_starts.lua`), each for its time. `speed_words` reads a plan from a text.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final, NamedTuple

EVERY_DAY: Final = frozenset(range(7))
MINUTES_OF_A_DAY: Final = 1440
UNLIMITED_WORD: Final = "unlimited"

HORIZON_MS = 500
"""How far ahead permits are requested. Those left over after a change of speed are soon used up."""

ASK_MS = 200
KEPT_MS = 500
BODY_BYTES_FIRST = 20_000
"""The assumed size of a page, until one has arrived."""

_WEIGHT = 0.05  # of the latest page in the mean; it covers about the last twenty


class Speed(NamedTuple):
    pages: float = math.inf
    body_bytes: float = math.inf

    @property
    def is_limited(self) -> bool:
        return min(self) < math.inf

    @property
    def is_paused(self) -> bool:
        return min(self) == 0

    def __str__(self) -> str:
        if self.is_paused:
            return "paused"
        limits = [f"{self.pages:,.4g} pages/s"] if self.pages < math.inf else []
        limits += [f"{self.body_bytes / 1e6:,.4g} MB/s"] if self.body_bytes < math.inf else []
        return " and ".join(limits) or UNLIMITED_WORD


UNLIMITED: Final = Speed()


@dataclass(frozen=True, slots=True)
class PlanPart:
    """A speed and when it applies. `begin` and `end` are minutes of the day; `end` is excluded."""

    speed: Speed
    begin: int = 0
    end: int = MINUTES_OF_A_DAY
    days: frozenset[int] = EVERY_DAY

    def holds_at(self, weekday: int, minute: int) -> bool:
        """Return whether this part applies at a minute of a weekday; Monday is 0."""
        if self.begin < self.end:
            return weekday in self.days and self.begin <= minute < self.end
        return (weekday in self.days and minute >= self.begin) or ((weekday - 1) % 7 in self.days and minute < self.end)


@dataclass(frozen=True, slots=True)
class SpeedPlan:
    text: str
    parts: tuple[PlanPart, ...]
    zone: tzinfo

    def at(self, now_ms: int) -> Speed:
        if not self.parts:
            return UNLIMITED
        local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(self.zone)
        minute = 60 * local.hour + local.minute
        return next((part.speed for part in self.parts if part.holds_at(local.weekday(), minute)), UNLIMITED)


NO_PLAN: Final = SpeedPlan("", (), UTC)


class StartPermits:
    """A node's share of the crawl's `speed`; each start is charged `body_bytes`, the mean size of a body."""

    def __init__(self) -> None:
        self.speed: Speed = UNLIMITED
        self.body_bytes = float(BODY_BYTES_FIRST)
        self._starts: deque[float] = deque()
        self._debt_bytes = 0.0
        self._given_back = 0
        self._owed = 0

    def __len__(self) -> int:
        return len(self._starts)

    def set_speed(self, speed: Speed) -> bool:
        """Adopt a speed and return whether it differs. Permits for the old speed become void."""
        if speed == self.speed:
            return False
        self.speed = speed
        self._starts.clear()
        self._given_back = self._owed = 0
        self._debt_bytes = 0.0
        return True

    def may_start(self, now_ms: float) -> bool:
        return not self.speed.is_limited or (bool(self._starts) and self._starts[0] <= now_ms)

    def use_permit(self) -> None:
        if self._starts:
            self._starts.popleft()

    def record_debt(self) -> None:
        """Record a fetch that started without a permit; a permit at hand, or the next one granted, pays for it."""
        if self._starts:
            self._starts.pop()
        else:
            self._owed += 1

    def wait_ms(self, now_ms: float) -> float | None:
        return max(0.0, self._starts[0] - now_ms) if self._starts else None

    def grant(self, first_ms: float, step_ms: float, count: int) -> None:
        paid = min(self._owed, count)
        self._owed -= paid
        self._starts.extend(first_ms + step_ms * at for at in range(paid, count))

    def record_ended(self, body_bytes: int) -> None:
        """Record a body's size, and charge its difference from the mean, which was charged at the start."""
        self._debt_bytes += body_bytes - self.body_bytes
        self.body_bytes = max(1.0, (1 - _WEIGHT) * self.body_bytes + _WEIGHT * body_bytes)

    def wanted_permits(self, now_ms: float, ready: int) -> int:
        """Return how many permits to request for `ready` fetches. Outdated permits are set aside for return."""
        while self._starts and self._starts[0] < now_ms - KEPT_MS:
            self._starts.popleft()
            self._given_back += 1
        if self.speed.is_paused:
            return 0
        most = math.ceil(HORIZON_MS / self.step_ms) + 1
        return max(0, min(ready + self._owed, most) - len(self._starts))

    def take_given_back(self) -> int:
        given_back, self._given_back = self._given_back, 0
        return given_back

    def take_debt_bytes(self) -> float:
        """Return, once, the bytes not yet charged at starts; negative if the bodies were smaller than charged."""
        debt, self._debt_bytes = self._debt_bytes, 0.0
        return debt

    @property
    def page_ms(self) -> float:
        """The time per start that the crawl's limit on pages allows; 0 without a limit."""
        return 1000 / self.speed.pages

    @property
    def bytes_ms(self) -> float:
        """The time per start that the crawl's limit on bytes allows; 0 without a limit."""
        return 1000 * self.body_bytes / self.speed.body_bytes

    @property
    def step_ms(self) -> float:
        return max(self.page_ms, self.bytes_ms, 1e-6)
