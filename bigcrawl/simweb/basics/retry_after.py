"""Parses Retry-After headers."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

_SECONDS: Final = re.compile("[0-9]{1,9}")


def retry_after_ms(value: str, at_ms: int) -> int:
    """Return how long to wait from `at_ms` (ms since the epoch), in ms.

    Args:
        value: the header's value: up to nine digits of seconds, or an HTTP date. For a past date, and for anything
            else, the result is 0.
        at_ms: the end of the answer.
    """
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return int(value) * 1000
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0
    return max(0, round(until.timestamp() * 1000) - at_ms)
