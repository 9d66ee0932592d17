"""How fast the whole crawl may go, by time of day and weekday; `speed_words` reads it from a text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import tzinfo

EVERY_DAY: Final = frozenset(range(7))
MINUTES_OF_A_DAY: Final = 1440
UNLIMITED_WORD: Final = "unlimited"


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
