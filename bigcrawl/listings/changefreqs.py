from __future__ import annotations

from typing import Final

CHANGEFREQS: Final = ("", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

_HOUR_S: Final = 3_600
_DAY_S: Final = 24 * _HOUR_S
PERIODS_S: Final = (0, 1, _HOUR_S, _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 365 * _DAY_S, 3_650 * _DAY_S)


def changefreq_of(written: str, age_s: float | None) -> str:
    """Return a valid changefreq unchanged; otherwise, the longest one whose period is within `age_s`."""
    word = written.strip().lower()
    if word in CHANGEFREQS[1:]:
        return word
    if age_s is None:
        return ""
    at_most = [word for word, period_s in zip(CHANGEFREQS, PERIODS_S, strict=True) if period_s <= max(age_s, _HOUR_S)]
    return at_most[-1]
