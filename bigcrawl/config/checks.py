"""Conversions that several readers of settings share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")


def read_ports(text: str) -> tuple[int, int]:
    """Return the first and the last port of a range, or one port twice."""
    found = re.fullmatch(r"(\d{1,5})(?:\s*-\s*(\d{1,5}))?", text)
    if found is None:
        raise ValueError("it is neither a port nor a range")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 <= first <= last < 65_536 or (first == 0 and last != 0):
        raise ValueError("ports are from 1 to 65535, the first before the last")
    return first, last


def checked(setting: str, text: str, read: Callable[[str], T], example: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise ConfigError(f"{setting} has {text!r}, which cannot be read: {error}; e.g. {example}") from None


def to_ms(seconds: float) -> int:
    return round(seconds * 1000)
