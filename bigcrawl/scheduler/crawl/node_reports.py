"""Reads nodes' reports from Redis, and checks each field: a damaged report must not end other nodes."""

from __future__ import annotations

import re
from typing import Any, Final

from bigcrawl.json_text import read_json
from bigcrawl.scheduler.crawl.alike import ARGUMENTS, BEATS, FIELD, SINCE, VERSION

_TEXTS: Final = ("token", "name", "owned", "trouble", VERSION)
_TABLES: Final = ("stages", "figures", FIELD, ARGUMENTS)
_NUMBERS: Final = (
    *("held", "fetches_max", "outbox", "pages", "rate", "partitions", "visits_late_s", "late_ms", "capacity"),
    *("items", "item_rate", "warnings", "errors", "visits", "visits_unchanged"),
    *("sent_bytes_s", "look_ups_s", SINCE, BEATS),
)
_KINDS: Final = dict.fromkeys(_TEXTS, str) | dict.fromkeys(_TABLES, dict)
_RANGES: Final = re.compile(r"(?:\d{1,6}(?:-\d{1,6})?(?:,|$))*")
_LARGEST: Final = 1 << 53


def read_report(text: str | bytes) -> dict[str, Any]:
    """Return a node's report, empty before its first one, or raise ValueError."""
    report = read_json(text or "{}")
    if not isinstance(report, dict):
        raise ValueError("it must be a JSON object")  # noqa: TRY004 - of the text
    for name, value in report.items():
        if not _is_sound(name, value):
            raise ValueError(f"its {name} is {str(value)[:40]!r}")
    return report


def read_or_nothing(text: str | bytes) -> dict[str, Any]:
    try:
        return read_report(text)
    except ValueError:
        return {}


def _is_sound(name: str, value: object) -> bool:
    if name in _NUMBERS:
        return isinstance(value, int | float) and abs(value) < _LARGEST and (name != "capacity" or value > 0)
    if name == "owned":
        return isinstance(value, str) and _RANGES.fullmatch(value) is not None
    return isinstance(value, _KINDS.get(name, object))
