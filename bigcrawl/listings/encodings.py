"""The encoding of a sitemap or feed: RFC 7303, section 3; XML 1.0, section 4.3.3 and appendix F."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from w3lib.encoding import http_content_type_encoding, resolve_encoding

from bigcrawl.markup import WEB_ENCODINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

DECODED_BYTES: Final = 128 << 10
_UTF16: Final = {BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_DECLARATION_BYTES: Final = 256
_LOOKED_BYTES: Final = 64 << 10
_find_encoding = re.compile(rb"<\?xml[^<>]{0,100}?\sencoding\s*+=\s*+[\"']([\w.:-]{1,40}+)").search


class EncodingHints(NamedTuple):
    """Evidence of a body's encoding: its header, and a `guess` for a body that declares none and is not UTF-8."""

    content_type: bytes = b""
    guess: Callable[[bytes], str] | None = None


NO_HINTS: Final = EncodingHints()


def codec_of(body: bytes, hints: EncodingHints = NO_HINTS) -> str:
    """Return the codec of a body; empty for UTF-8. A body that declares UTF-8 and is valid overrides its header."""
    if marked := _UTF16.get(body[:2]):
        return marked
    if body.startswith(BOM_UTF8):
        return ""
    written = _find_encoding(body, 0, _DECLARATION_BYTES)
    declared = _known_codec(written[1].decode("ascii", "replace")) if written else ""
    told = _known_codec(http_content_type_encoding(hints.content_type.decode("latin-1")) or "")
    if told and (told == "utf-8" or declared != "utf-8" or not _is_utf8(body)):
        declared = told
    if not declared and hints.guess is not None and not _is_utf8(body):
        declared = _known_codec(hints.guess(body))
    return "" if declared == "utf-8" else declared


def in_utf8(body: bytes, codec: str) -> Generator[list[Any], None, bytes]:
    """Return a body in UTF-8. Yield an empty list after each part, as decoding with a wrong codec takes long."""
    if not codec:
        return body.removeprefix(BOM_UTF8)
    decoder, pieces = getincrementaldecoder(codec)("replace"), []
    for at in range(0, len(body), DECODED_BYTES):
        pieces.append(decoder.decode(body[at : at + DECODED_BYTES]).encode("utf-8", "replace"))
        yield []
    return b"".join(pieces)


def begin_in_utf8(body: bytes, codec: str, bytes_max: int) -> bytes:
    begin = body[:bytes_max]
    return begin[:DECODED_BYTES].decode(codec, "replace").encode("utf-8", "replace") if codec else begin


def _known_codec(label: str) -> str:
    """Return the codec for an encoding's label; empty if it is unknown, or does not include ASCII."""
    codec = resolve_encoding(label) or ""
    return codec if codec in WEB_ENCODINGS and not codec.startswith("utf-16") else ""


def _is_utf8(body: bytes) -> bool:
    try:
        getincrementaldecoder("utf-8")().decode(body[:_LOOKED_BYTES])
    except UnicodeDecodeError:
        return False
    return True
