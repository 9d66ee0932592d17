from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_parts_of = re.compile(rb"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?Z").fullmatch


def to_ms(date: bytes) -> int | None:
    found = _parts_of(date)
    seconds = _to_seconds(found[1]) if found else None
    if found is None or seconds is None:
        return None
    return seconds * 1000 + int((found[2] or b"").ljust(3, b"0")[:3])


@lru_cache(16)
def _to_seconds(date: bytes) -> int | None:
    try:
        return int(datetime.strptime(date.decode(), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
