"""Parses Retry-After headers."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

_SECONDS: Final = re.compile("[0-9]{1,9}")


def retry_after_ms(value: str, at_ms: int) -> int:
    """Return the delay of a Retry-After value received at `at_ms`; 0 for past dates and malformed values."""
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return int(value) * 1000
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0
    return max(0, round(until.timestamp() * 1000) - at_ms)
