"""Priorities from a site's hints about its own pages; they raise a page by one level at most."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

DATE_CHARS_MAX: Final = 64
DAY_S: Final = 86_400
RAISED_MAX: Final = 9
"""The highest priority of the level *raised*; pages that a spider chose come before."""
_STEPS: Final = ((1, 6), (7, 4), (31, 2))  # days since the change, priority
_WEIGHT: Final = 6  # of the part of a sitemap's priority above 0.5


def seconds_of(written: str) -> float | None:
    """Return the Unix time of a date in RFC 822, ISO 8601 or W3C form; None if it is not a date."""
    text = written.strip()
    return _read_date(text) if 0 < len(text) <= DATE_CHARS_MAX else None


# W3C dates without a day: https://www.w3.org/TR/NOTE-datetime
_month = re.compile(r"(\d{4})(?:-(\d\d))?+", re.ASCII).fullmatch


@lru_cache(4_096)  # a sitemap has few dates, each read twice
def _read_date(text: str) -> float | None:
    if month := _month(text):
        text = f"{month[1]}-{month[2] or '01'}-01"
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError, OSError):
            continue
    return None


def modified_s(written: str, now_s: float) -> int | None:
    """Return the latest time of a change by a site's date, at most `now_s`; None without a valid date.

    A date more than a day ahead is invalid; one without a time of day means its last second.
    """
    at_s = seconds_of(written)
    if at_s is None or at_s > now_s + DAY_S:
        return None
    is_day = at_s % DAY_S == 0 and ":" not in written
    return int(min(at_s + is_day * (DAY_S - 1), now_s))


def hinted_priority(modified: str, now_s: float, importance: str = "") -> int:
    """Return a priority from 0, which is ordinary, to `RAISED_MAX`.

    A `modified` date more than a day after `now_s` does not count, nor an `importance` (a sitemap's `priority`) up to
    its default, 0.5.
    """
    return min(RAISED_MAX, _by_age(seconds_of(modified), now_s) + _by_importance(importance))


def _by_age(at_s: float | None, now_s: float) -> int:
    if at_s is None or at_s > now_s + DAY_S:
        return 0
    return next((priority for days, priority in _STEPS if now_s - at_s <= days * DAY_S), 0)


def _by_importance(written: str) -> int:
    try:
        given = float(written[:DATE_CHARS_MAX] or 0.5)
    except ValueError:
        return 0
    return round(_WEIGHT * (min(given, 1.0) - 0.5)) if math.isfinite(given) and given > 0.5 else 0
