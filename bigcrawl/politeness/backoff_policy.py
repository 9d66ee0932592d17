"""How long hosts and servers rest between fetches: delays, scaled by budget, and back-off after failures.

A 429, a 503 or no response is a failure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    BudgetArray = npt.NDArray[np.uint32]

OVERLOADED = frozenset({429, 503})
"""Statuses that are about the host, not the page, and may carry a Retry-After."""

FAILURES = frozenset({"status:429", "status:503", "error:dns", "error:timeout", "error:refused", "error:connection"})
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
    """Return the wait that a Retry-After header requests, by the response's own `date`; 0 if past or invalid."""
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


def scaled_delay_ms(delay_ms: int, delay_min_ms: int, budget: float, base: int) -> int:
    """Return a delay that shrinks as a budget grows, so that every host uses up its budget in the same time.

    A host's `budget` is that of its PLD; a server's is the mean of its hosts' budgets. Only the operator's own delay is
    scaled. Once a delay has reached `delay_min_ms`, URLs are admitted faster than they are fetched, and the surplus
    waits on disk.

    Source: IRLbot §6.1.
    """
    if delay_min_ms >= delay_ms or budget <= base:
        return delay_ms
    return max(delay_min_ms, math.ceil(delay_ms * base / budget))


BACKOFF_FIRST_MS = 60_000
"""The first wait after a failure; long enough for a server's restart."""

BACKOFF_LONGEST_MS = 3_600_000
"""The longest wait, so that a recovered host is noticed the same day, often the same hour."""

SLOW_FACTOR = 10
"""As in Mercator: a slow host then holds a fetch slot for less than a ninth of the time."""

SLOW_LONGEST_MS = 600_000
"""A slow host's longest rest: one large file over a slow line must not cost hours."""

# Bounds the shift, as the number of failures is unbounded: 34 years, if the first wait is a millisecond.
_DOUBLINGS_MAX = 40


@dataclass(frozen=True, slots=True)
class DelayPolicy:
    minimum_ms: int = 1_000

    crawl_delay_cap_ms: int = 60_000
    """The longest crawl delay that is obeyed; some sites ask for a day, which means "go away"."""

    download_factor: float = 0.0
    """A host rests for this many times its last download's duration; Mercator used 10, 0 disables it."""

    slow_after_ms: int = 0
    """A longer download is slow: its host rests for `SLOW_FACTOR` times the excess. 0 disables this."""


def host_delay_ms(policy: DelayPolicy, *, crawl_delay_ms: int | None, download_ms: int, backoff_ms: int = 0) -> int:
    """Return the host's rest between the end of a fetch and the start of the next: the longest required one."""
    asked_ms = min(crawl_delay_ms or 0, policy.crawl_delay_cap_ms)
    slow_ms = round(policy.download_factor * download_ms)
    if 0 < policy.slow_after_ms < download_ms:
        slow_ms = max(slow_ms, min(SLOW_FACTOR * (download_ms - policy.slow_after_ms), SLOW_LONGEST_MS))
    return max(policy.minimum_ms, asked_ms, slow_ms, backoff_ms)


def retry_backoff_ms(
    attempts: int, jitter: float, *, first_ms: int = BACKOFF_FIRST_MS, longest_ms: int = BACKOFF_LONGEST_MS
) -> int:
    """Return the wait before the next attempt, doubled by each failure, longer by up to a half by `jitter`."""
    waited_ms = min(first_ms << min(max(attempts - 1, 0), _DOUBLINGS_MAX), longest_ms)
    return waited_ms + round(waited_ms * jitter / 2)
