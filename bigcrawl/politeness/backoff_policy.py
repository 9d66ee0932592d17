"""When a host has failed, and how long it must back off; a 429, a 503 or no response is a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

OVERLOADED = frozenset({429, 503})
"""Statuses that are about the host, not the page, and may carry a Retry-After."""

FAILURES = frozenset(
    {"status:429", "status:503", "error:dns", "error:timeout", "error:refused", "error:connection"},
)
DOUBTFUL = frozenset({"status:503", "error:timeout", "error:refused", "error:connection", "robots"})
"""Failures that may concern a single page, port or scheme."""

NO_WORD = frozenset({"error:other"})
"""Our own errors, which say nothing about the host."""

FREE_TRIES_MAX = 3
"""A URL's free failures, after another URL of the host had already failed."""

_SECONDS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    first_ms: int = 10_000
    longest_ms: int = 43_200_000
    retry_after_max_ms: int = 3_600_000
    failures_max: int = 8


class Backoff(NamedTuple):
    """The back-off after one failure; `jitter`, in thousandths, keeps hosts apart. `failures_max` 0 retires none."""

    first_ms: int
    longest_ms: int
    jitter: int
    failures_max: int


def is_failure(outcome: str) -> bool:
    return outcome in FAILURES


def backoff_of_failure(policy: BackoffPolicy, jitter: float, retry_after_ms: int = 0) -> Backoff:
    """Return the back-off of a host that has failed; `jitter`, from 0 to 1, lengthens it by up to a half."""
    first_ms = retry_after_ms or policy.first_ms
    longest_ms = max(policy.longest_ms, retry_after_ms)
    return Backoff(first_ms, longest_ms, round(500 * jitter), policy.failures_max)


def retry_after_ms(value: str, date: str, now_ms: int, longest_ms: int) -> int:
    """Return the wait that a Retry-After header asks for, by the response's own `date`; 0 if past or invalid."""
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(int(value) * 1000, longest_ms)
    until_ms = _date_ms(value)
    if until_ms is None:
        return 0
    sent_ms = _date_ms(date)
    return min(max(0, until_ms - (now_ms if sent_ms is None else sent_ms)), longest_ms)


def _date_ms(text: str) -> int | None:
    try:
        date = parsedate_to_datetime(text.strip())
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
