"""When a host has failed, and what is asked of it then: decisions only; clock and randomness are the caller's.

A failure is an answer that says "not now" (429, 503), or no answer at all. Everything else that the host sends, a 500
too, is an answer: it is the page that is broken, and the page's own bounded tries are enough. So may it be with some of
the failures: which of them are the host's, `bigcrawl.scheduler.handout.host_health` decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

OVERLOADED = frozenset({429, 503})
"""Statuses that speak of the host, not of the page, and may bring a Retry-After."""

FAILURES = frozenset(
    {"status:429", "status:503", "error:dns", "error:timeout", "error:refused", "error:connection"},
)
"""Outcomes that are the host's failures, or a page's."""

DOUBTFUL = frozenset({"status:503", "error:timeout", "error:refused", "error:connection", "robots"})
"""Failures that may be one page's, one port's or one scheme's alone."""

NO_WORD = frozenset({"error:other"})
"""Outcomes of a fetch that say nothing of the host: the error is ours."""

FREE_TRIES_MAX = 3
"""Failed tries of a URL that are not counted, because another of its host had failed before: so many more it has."""

_SECONDS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """What the operator set; the settings have the same in seconds."""

    first_ms: int = 10_000
    longest_ms: int = 43_200_000
    retry_after_max_ms: int = 3_600_000
    failures_max: int = 8


def is_failure(outcome: str) -> bool:
    """Whether a URL's outcome is its host's failure."""
    return outcome in FAILURES


def failure_word(
    policy: BackoffPolicy, why: str, jitter: float, retry_after_ms: int = 0, order: int | None = None
) -> str:
    """Return what an end says of a host that has failed, as `exchange_urls` reads it.

    Args:
        policy: the operator's settings.
        why: an outcome or the like, without blanks.
        jitter: from 0 to 1, drawn by the caller; it lengthens the back-off by up to a half.
        retry_after_ms: what the host asked for, 0 for nothing; the back-off begins with it, and grows from there.
        order: the next try's place in its host's queue; None: the old one.
    """
    first_ms = retry_after_ms or policy.first_ms
    longest_ms = max(policy.longest_ms, retry_after_ms)
    place = "" if order is None else order
    return f"{first_ms} {longest_ms} {round(500 * jitter)} {policy.failures_max} {why} {place}"


def retry_after_ms(value: str, date: str, now_ms: int, longest_ms: int) -> int:
    """Return how long a Retry-After asks to wait, in ms; 0 for a past date, for 0 and for what cannot be read.

    Args:
        value: the header: seconds, or an HTTP date.
        date: the answer's own Date, which the other is relative to whatever the host's clock says; "" if it has none.
        now_ms: the time here, for an answer without a Date.
        longest_ms: no wait is longer.
    """
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(int(value) * 1000, longest_ms)
    until_ms = _date_ms(value)
    if until_ms is None:
        return 0
    sent_ms = _date_ms(date)
    return min(max(0, until_ms - (now_ms if sent_ms is None else sent_ms)), longest_ms)


def _date_ms(text: str) -> int | None:
    """An HTTP date as ms since the epoch; one without a zone is UTC, as HTTP's are."""
    try:
        date = parsedate_to_datetime(text.strip())
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
