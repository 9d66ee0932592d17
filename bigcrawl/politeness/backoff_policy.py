"""When a host has failed, and how long it must back off: decisions only; the caller provides clock and randomness.

A failure is a response that says "not now" (429, 503), or no response. Everything else that a host sends counts as an
answer, even a 500: then the page is broken, and its own bounded retries suffice. Some failures too may be the page's
alone; `bigcrawl.scheduler.handout.host_health` decides which are the host's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

OVERLOADED = frozenset({429, 503})
"""Statuses that concern the host rather than the page, and may carry a Retry-After."""

FAILURES = frozenset(
    {"status:429", "status:503", "error:dns", "error:timeout", "error:refused", "error:connection"},
)
"""Outcomes that are failures of the host, or of a page."""

DOUBTFUL = frozenset({"status:503", "error:timeout", "error:refused", "error:connection", "robots"})
"""Failures that may concern a single page, port or scheme."""

NO_WORD = frozenset({"error:other"})
"""Outcomes that say nothing about the host, because the error is ours."""

FREE_TRIES_MAX = 3
"""A URL gets this many uncounted tries, for failures after another URL of its host had already failed."""

_SECONDS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """The operator's settings, converted from seconds."""

    first_ms: int = 10_000
    longest_ms: int = 43_200_000
    retry_after_max_ms: int = 3_600_000
    failures_max: int = 8


class Backoff(NamedTuple):
    """One failure's back-off; `exchange_urls` multiplies it by the failures in a row, which Redis counts.

    Attributes:
        first_ms: after the first failure in a row.
        longest_ms: at most, after however many.
        jitter: thousandths that are added, so that hosts which failed together are not asked together.
        failures_max: the failures in a row that retire a host; 0 for no such number.
    """

    first_ms: int
    longest_ms: int
    jitter: int
    failures_max: int


def is_failure(outcome: str) -> bool:
    """Whether a URL's outcome counts as a failure of its host."""
    return outcome in FAILURES


def backoff(policy: BackoffPolicy, jitter: float, retry_after_ms: int = 0) -> Backoff:
    """Return for how long a host that has failed is left alone.

    Args:
        policy: the operator's settings.
        jitter: from 0 to 1, drawn by the caller; lengthens the back-off by up to a half.
        retry_after_ms: what the host asked for, 0 for nothing; the back-off starts with it and grows from there.
    """
    first_ms = retry_after_ms or policy.first_ms
    longest_ms = max(policy.longest_ms, retry_after_ms)
    return Backoff(first_ms, longest_ms, round(500 * jitter), policy.failures_max)


def retry_after_ms(value: str, date: str, now_ms: int, longest_ms: int) -> int:
    """Return how long a Retry-After asks to wait, in ms; 0 for a past date, for 0, and for an invalid value.

    Args:
        value: the header: seconds, or an HTTP date.
        date: the response's own Date, so that the host's clock need not be right; "" if it has none.
        now_ms: the local time, for a response without Date.
        longest_ms: upper bound of the result.
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
    """Return an HTTP date as ms since the epoch; one without a zone is UTC."""
    try:
        date = parsedate_to_datetime(text.strip())
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
