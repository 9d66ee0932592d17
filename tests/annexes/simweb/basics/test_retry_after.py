from __future__ import annotations

import pytest

from bigcrawl_simweb.serve.http1 import retry_after_ms

AT_MS = 1_700_000_000_250  # Tue, 14 Nov 2023 22:13:20.25 GMT


@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        ("0", 0),
        (" 120 ", 120_000),
        ("Tue, 14 Nov 2023 22:13:30 GMT", 9_750),
        ("Tuesday, 14-Nov-23 22:13:30 GMT", 9_750),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("soon", 0),
        ("-1", 0),
        ("", 0),
        ("²", 0),
        ("9" * 5000, 0),
    ],
)
def test_seconds_and_dates_are_understood_and_nothing_else(value: str, wait_ms: int):
    """A date counts from the answer's end, to the millisecond; what is past or nonsense asks for nothing."""
    assert retry_after_ms(value, AT_MS) == wait_ms
