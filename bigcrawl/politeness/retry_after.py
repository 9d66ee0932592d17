"""What a server asks for with `Retry-After` (RFC 9110 §10.2.3): seconds, or a date."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

RETRY_AFTER_MS_MAX = 3_600_000
"""The longest that is obeyed: what is asked for beyond an hour means "go away"."""

_match_seconds = re.compile(r"[0-9]{1,12}").fullmatch


def retry_after_ms(value: str, now_ms: int, longest_ms: int = RETRY_AFTER_MS_MAX) -> int | None:
    """Return for how long a host shall be left alone, or None when the header says nothing that can be used.

    Args:
        value: the header's value, as it came.
        now_ms: milliseconds since the epoch; dates are compared with it.
        longest_ms: the cap on what is obeyed.

    Returns:
        1 to `longest_ms`; a date that is over, 0, and what cannot be read are as no header.
    """
    text = value.strip()
    asked_ms = int(text) * 1_000 if _match_seconds(text) else _date_ms(text) - now_ms
    return min(asked_ms, longest_ms) if asked_ms > 0 else None


def _date_ms(text: str) -> int:
    """The date in milliseconds since the epoch; 0 for what is none."""
    try:
        date = parsedate_to_datetime(text)
        # An HTTP date is in GMT, also where it does not say so.
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (TypeError, ValueError, OverflowError):
        return 0
