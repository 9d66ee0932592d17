"""When cycles begin: `02:00; 14:00 Sat-Sun`, in BIGCRAWL_TIME_ZONE, or `every 6h`, counted from 1970 on in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.speed_words import DAYS, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

_EVERY: Final = re.compile(r"every (\d{1,7})(s|min|h|d)")
_AT: Final = re.compile(rf"(\d\d?):(\d\d)(?: ({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))?)?")
_UNITS_S: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_DAYS_MAX: Final = 8  # the next begin of any part is at most a week and a change of the clock away
EVERY_S_MAX: Final = 3_650 * 86_400
EVERY_S_MIN: Final = 5  # shorter than the checks of a cycle's end would find it


class CyclePlan:
    def __init__(self, periods_s: list[int], times: list[tuple[int, int, frozenset[int]]], zone: tzinfo) -> None:
        self._periods_s = periods_s
        self._times = times
        self._zone = zone
        self._around = (0, 0)

    def around(self, now_s: int) -> tuple[int, int]:
        """Return the start of the last cycle, at or before `now_s`, and the start of the next one."""
        last_s, next_s = self._around
        if not last_s <= now_s < next_s:
            begins = list(self._begins(now_s))
            self._around = max(at for at in begins if at <= now_s), min(at for at in begins if at > now_s)
        return self._around

    def due_s(self, now_s: int, wait_s: int = 0) -> int:
        """Return the first start after `now_s` that is at least `wait_s` after the last one."""
        last_s, next_s = self.around(now_s)
        return next_s if next_s >= last_s + wait_s else max(next_s, self.around(last_s + wait_s - 1)[1])

    def _begins(self, now_s: int) -> Iterator[int]:
        for period_s in self._periods_s:
            yield now_s // period_s * period_s
            yield (now_s // period_s + 1) * period_s
        today = datetime.fromtimestamp(now_s, UTC).astimezone(self._zone).replace(hour=0, minute=0, second=0)
        for days in range(-_DAYS_MAX, _DAYS_MAX + 1):
            day = today + timedelta(days=days)
            for hour, minute, weekdays in self._times:
                if day.weekday() in weekdays:
                    yield int(day.replace(hour=hour, minute=minute, fold=0).timestamp())


def parse_cycles(text: str, zone: str) -> CyclePlan:
    periods_s: list[int] = []
    times: list[tuple[int, int, frozenset[int]]] = []
    for part in filter(None, (part.strip() for part in text.lower().split(";"))):
        if found := _EVERY.fullmatch(part):
            periods_s.append(int(found[1]) * _UNITS_S[found[2]])
        elif (found := _AT.fullmatch(part)) and int(found[1]) < 24 and int(found[2]) < 60:
            first, last = (DAYS.index(name) for name in (found[3] or "mon", found[4] or found[3] or "sun"))
            days = frozenset((first + day) % 7 for day in range((last - first) % 7 + 1))
            times.append((int(found[1]), int(found[2]), days))
        else:
            raise _refusal(text)
    if not (periods_s or times) or any(not EVERY_S_MIN <= period_s <= EVERY_S_MAX for period_s in periods_s):
        raise _refusal(text)
    return CyclePlan(periods_s, times, zone_of(zone))


def _refusal(text: str) -> ConfigError:
    return ConfigError(
        f"BIGCRAWL_CYCLES is {text!r}; must be parts such as 02:00, 14:30 Mon-Fri or every 6h, with ; between them, "
        f"from every {EVERY_S_MIN}s to every 3650d"
    )
