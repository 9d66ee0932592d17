"""How fast the whole crawl may go, by time of day and weekday: `80/s 08:00-18:00 Mon-Fri; 180/s`.

    plan    parts separated by ";": the first whose times fit applies; if none fits there is no limit
    part    rates, times of day, weekdays, in any order, separated by blanks or commas
    rate    80/s  0.5/s  30/min     pages of any outcome, and robots.txt files
            2MB/s  500KB/s  1GiB/s          bytes of bodies, as transferred
            unlimited               no limit, for a part that only names an exception
    time    08:00-18:00             includes the first minute but not the last; 22:00-06:00 goes over midnight
    days    Mon-Fri  Sat  Sun       over midnight: the day on which the time begins

A rate of 0 pauses the crawl. If both pages and bytes are given, the one reached first applies. Source: PolyBot §4.2,
which had 80 pages/s by day and 180 by night. Differs: starts are paced by the plan (`grant_starts`). PolyBot varied the
number of connections until the measured speed matched.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.start_permits import EVERY_DAY, MINUTES_OF_A_DAY, UNLIMITED_WORD, PlanPart, Speed, SpeedPlan

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
RATE_MAX: Final = 1e12

_UNITS: Final = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_PERIODS: Final = {"s": 1, "min": 60, "h": 3600}
_RATE = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)/(s|min|h)", re.ASCII)
_TIMES = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_DAYS = re.compile(rf"({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))?")


def parse_speed(text: str, zone: str = "UTC", where: str = "BIGCRAWL_SPEED") -> SpeedPlan:
    """Return the plan that a text describes; an empty text means no limit.

    `zone` is a name such as Europe/Berlin; error messages begin with `where`.

    Raises:
        ConfigError: the text is invalid. The message names the fault and shows a valid form.
    """
    parts = [_parse_part(part.strip(), where) for part in text.split(";") if part.strip()]
    return SpeedPlan(text.strip(), tuple(parts), zone_of(zone))


def zone_of(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise _no_zone(name) from error
    except KeyError as error:
        raise _no_zone(name) from error


def _no_zone(name: str) -> ConfigError:
    return ConfigError(
        f"BIGCRAWL_TIME_ZONE is {name!r}; must be a name in this machine's time zone database, e.g. "
        f"Europe/Berlin (pip install tzdata installs the database)"
    )


def _parse_part(text: str, where: str) -> PlanPart:
    pages = body_bytes = math.inf
    times: tuple[int, int] | None = None
    days: set[int] = set()
    has_rate = False
    for word in re.split(r"[\s,]+", text.lower()):
        if word == UNLIMITED_WORD:
            has_rate = True
        elif found := _RATE.fullmatch(word):
            number, unit, period = found.groups()
            if unit not in _UNITS:
                raise _refusal(where, text, f"{word!r} has the unit {unit!r}")
            rate = float(number) * _UNITS[unit] / _PERIODS[period]
            if rate > RATE_MAX:
                raise _refusal(where, text, f"{word!r} is more than any crawl needs")
            has_rate = True
            pages, body_bytes = (min(pages, rate), body_bytes) if not unit else (pages, min(body_bytes, rate))
        elif found := _TIMES.fullmatch(word):
            if times is not None:
                raise _refusal(where, text, "it has two times; split it into two parts")
            times = _parse_times(found, where, text)
        elif found := _DAYS.fullmatch(word):
            days |= _parse_days(found)
        elif word:
            raise _refusal(where, text, f"{word!r} is neither a rate, nor a time, nor a day")
    if not has_rate:
        raise _refusal(where, text, "it has no rate")
    begin, end = times or (0, MINUTES_OF_A_DAY)
    return PlanPart(Speed(pages, body_bytes), begin, end, frozenset(days) or EVERY_DAY)


def _parse_times(found: re.Match[str], where: str, text: str) -> tuple[int, int]:
    hour, minute, end_hour, end_minute = map(int, found.groups())
    begin, end = 60 * hour + minute, 60 * end_hour + end_minute
    if max(minute, end_minute) > 59 or max(begin, end) > MINUTES_OF_A_DAY or begin in (end, MINUTES_OF_A_DAY):
        raise _refusal(where, text, f"{found[0]!r} is not a valid time of day")
    return begin, end


def _parse_days(found: re.Match[str]) -> set[int]:
    first, last = DAYS.index(found[1]), DAYS.index(found[2] or found[1])
    return {(first + day) % 7 for day in range((last - first) % 7 + 1)}


def _refusal(where: str, text: str, fault: str) -> ConfigError:
    return ConfigError(
        f"{where} has {text!r}: {fault}; must be parts such as 80/s 08:00-18:00 Mon-Fri, or 2MB/s, with ; between them"
    )
