"""Turns the bytes of a header into a URL, such as Location, Refresh, Link or WARC-Target-URI.

Each byte beyond ASCII is escaped by itself, as in Chromium, so that the server receives the bytes that it sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.url.canonical import join

if TYPE_CHECKING:
    from collections.abc import Iterable

VALUE_BYTES_MAX: Final = 16 << 10  # a long host name is slow to encode


def url_in(values: Iterable[bytes] | None, base: str) -> str | None:
    value = next(filter(None, values or ()), b"")
    return join(base, text_of(value)) if 0 < len(value) <= VALUE_BYTES_MAX else None


def text_of(value: bytes) -> str:
    """Return a URL as text, from which a parser gets the same bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value)
