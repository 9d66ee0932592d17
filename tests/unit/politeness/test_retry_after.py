"""`Retry-After`: seconds, dates, and what people write instead."""

from __future__ import annotations

import pytest

from bigcrawl.politeness.retry_after import RETRY_AFTER_MS_MAX, retry_after_ms

NOW_MS = 1_445_412_480_000  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [
        ("120", 120_000),
        (" 5 ", 5_000),
        ("0", None),
        ("999999999999", RETRY_AFTER_MS_MAX),
        ("99999999999999999999999", None),
        ("-5", None),
        ("1.5", None),
        ("1e3", None),
        ("soon", None),
        ("", None),
        ("\N{ARABIC-INDIC DIGIT FIVE}", None),
        ("Wed, 21 Oct 2015 07:30:00 GMT", 120_000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("Tue, 20 Oct 2015 07:28:00 GMT", None),
        ("Wednesday, 21-Oct-15 07:30:00 GMT", 120_000),
        ("Wed Oct 21 07:30:00 2015", 120_000),
        ("Wed, 21 Oct 2099 07:28:00 GMT", RETRY_AFTER_MS_MAX),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        ("Wed, 21 Oct 2015 07:30:00", 120_000),
    ],
)
def test_header_is_read(value: str, expected_ms: int | None) -> None:
    """Seconds and the three kinds of dates count, capped; the past, nothing and nonsense are as no header."""
    assert retry_after_ms(value, NOW_MS) == expected_ms


def test_cap_is_the_callers() -> None:
    """Asked for more than is obeyed, the cap is what is waited."""
    assert retry_after_ms("120", NOW_MS, 60_000) == 60_000
