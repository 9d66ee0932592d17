"""Dates of records become numbers, and what is no date becomes none."""

from __future__ import annotations

import pytest

from bigcrawl.page_index.parquet import to_ms


@pytest.mark.parametrize(
    ("date", "ms"),
    [
        (b"1970-01-01T00:00:00Z", 0),
        (b"2026-11-25T22:05:12.345Z", 1_795_644_312_345),
        (b"2026-11-25T22:05:12.3Z", 1_795_644_312_300),
        (b"2026-11-25T22:05:12.345678901Z", 1_795_644_312_345),
        (b"", None),
        (b"2026-11-25", None),
        (b"2026-13-25T22:05:12Z", None),
        (b"2026-11-25T22:05:12.345+01:00", None),
    ],
)
def test_a_date_is_read_to_the_millisecond(date: bytes, ms: int | None) -> None:
    """With any number of decimals that WARC/1.1 allows."""
    assert to_ms(date) == ms
