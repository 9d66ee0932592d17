"""Makes a URL of the bytes of a header, for every reader of a Location, Refresh, Link or WARC-Target-URI.

A header has no encoding. Each byte beyond ASCII is escaped by itself, as Chromium does, so that the server is asked for
the bytes that it sent. All else is the URL parser's work: it finds a host in the escapes, joins, and keeps empty
segments. Readers of such a header call this module and nothing of `urllib` or w3lib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.url.canonical import join

if TYPE_CHECKING:
    from collections.abc import Iterable

VALUE_BYTES_MAX: Final = 16 << 10  # longer than any URL that is fetched; a long host name takes long to encode


def url_in(values: Iterable[bytes] | None, base: str) -> str | None:
    """Return the canonical URL that a header names; None if it names none that can be crawled.

    Args:
        values: of all header lines of that name. The first that is not empty counts, as in Chromium.
        base: the URL of the answer, absolute.
    """
    value = next(filter(None, values or ()), b"")
    return join(base, text_of(value)) if 0 < len(value) <= VALUE_BYTES_MAX else None


def text_of(value: bytes) -> str:
    """Return a URL as text from which a URL parser makes the same bytes: it escapes characters as UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value)
