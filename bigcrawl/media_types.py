"""The media type of a body, from its headers or else from its first bytes.

Sources: Fetch, "extract a MIME type"; MIME Sniffing 4.4, 7 and 7.1. Differs: an unknown type is also HTML if `<html` is
among its first 1,024 bytes; MP4, WebM, and MP3 without an ID3 tag are only binary.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER_BYTES: Final = 1445
"""How much of a body is examined (MIME Sniffing, resource header)."""
BINARY: Final = "application/octet-stream"
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_HTML_BYTES: Final = 1024
_TOLD_BYTES_MAX: Final = 1_000

_find_binary = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
_split_values = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*+"?+)++', re.DOTALL).findall
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_parse_type = re.compile(rb"[\t\n\r ]*+(%b/%b)[\t\n\r ]*+(?:;|\Z)" % (_TOKEN, _TOKEN)).match
_UNKNOWN: Final = frozenset({"unknown/unknown", "application/unknown", "*/*"})

_begins_html = re.compile(
    rb"[\t\n\f\r ]*+<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]",
    re.IGNORECASE,
).match
_begins_xml = re.compile(rb"[\t\n\f\r ]*+<\?xml").match
_SIGNATURES: Final = tuple(
    (re.compile(signature, re.DOTALL).match, name)
    for signature, name in (
        (rb"%PDF-", "application/pdf"),
        (rb"%!PS-Adobe-", "application/postscript"),
        (rb"(?:\xfe\xff|\xff\xfe)..|\xef\xbb\xbf.", "text/plain"),
        (rb"\0\0[\x01\x02]\0", "image/x-icon"),
        (rb"BM", "image/bmp"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF....WEBPVP", "image/webp"),
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"FORM....AIFF", "audio/aiff"),
        (rb"ID3", "audio/mpeg"),
        (rb"OggS\0", "application/ogg"),
        (rb"MThd\0\0\0\x06", "audio/midi"),
        (rb"RIFF....AVI ", "video/avi"),
        (rb"RIFF....WAVE", "audio/wave"),
        (rb"\x1f\x8b\x08", "application/x-gzip"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"Rar!\x1a\x07\0", "application/x-rar-compressed"),
    )
)


def is_binary(body: bytes) -> bool:
    """Return whether the beginning of a body has a binary data byte (MIME Sniffing 3)."""
    return _find_binary(body, 0, HEADER_BYTES) is not None


def type_told(values: Sequence[bytes] | None) -> str:
    """Return the last readable type in Content-Type headers, in lower case without parameters; empty without any."""
    if not values:
        return ""
    return _known_type(values[0] if len(values) == 1 else b",".join(values))


@lru_cache(1_024)
def _known_type(joined: bytes) -> str:
    told = ""
    for value in _split_values(joined[:_TOLD_BYTES_MAX]):
        found = _parse_type(value)
        if found is not None and (name := found[1].decode("ascii").lower()) not in _UNKNOWN:
            told = name
    return told


def type_of(values: Sequence[bytes] | None, body: bytes) -> str:
    return type_told(values) or sniff_media_type(body)


def sniff_media_type(body: bytes) -> str:
    """Return a body's media type by its first bytes (MIME Sniffing 7.1)."""
    if _begins_html(body) or (b"<html" in body[:_HTML_BYTES].lower() and not is_binary(body[:_HTML_BYTES])):
        return "text/html"
    if _begins_xml(body):
        return "text/xml"
    by_signature = next((name for begins, name in _SIGNATURES if begins(body)), "")
    return by_signature or (BINARY if is_binary(body) else "text/plain")
