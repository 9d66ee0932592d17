"""What a site says of its own pages, as a priority: it raises a page among others, and by one level only."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

DATE_CHARS_MAX: Final = 64
DAY_S: Final = 86_400
RAISED_MAX: Final = 9
"""The highest priority of the level *raised*; a site cannot push its pages before those that a spider chose."""
_STEPS: Final = ((1, 6), (7, 4), (31, 2))  # days since, priority
_WEIGHT: Final = 6  # of a sitemap's priority, 0 to 1, above 0.5


def seconds_of(written: str) -> float | None:
    """Return the time of a date of a feed (RFC 822, ISO 8601) or a sitemap (W3C); None if it is not a date."""
    text = written.strip()
    return _read_date(text) if 0 < len(text) <= DATE_CHARS_MAX else None


@lru_cache(4_096)  # a sitemap has few dates, and each is asked for twice
def _read_date(text: str) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError, OSError):
            continue
    return None


def modified_s(written: str, now_s: float) -> int | None:
    """Return the latest time at which a page may have changed, from a date of its site.

    None if that is not a date, or more than a day ahead. A date without a time of day counts as its last second. No
    time returned is after now.
    """
    at_s = seconds_of(written)
    if at_s is None or at_s > now_s + DAY_S:
        return None
    is_day = at_s % DAY_S == 0 and ":" not in written
    return int(min(at_s + is_day * (DAY_S - 1), now_s))


def hinted_priority(modified: str, now_s: float, importance: str = "") -> int:
    """Return 0, which is ordinary, to `RAISED_MAX`.

    Args:
        modified: when the page was made or changed, as the site writes it. Nothing is raised by a date ahead of
            now, but for a day, which time zones may make.
        now_s: since the epoch.
        importance: 0 to 1, as a sitemap's `priority`; up to 0.5, its default, it says nothing.
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
