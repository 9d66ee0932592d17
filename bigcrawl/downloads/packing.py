"""Whether a packed body is whole, by its own end: lengths and chunks around it may be wrong.

Servers pack a page and tell the length of what they packed. Chromium accepts that; so does whoever looks at the stream,
which has an end and, in gzip and zlib, a checksum.
"""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, Any, Final

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterable

UNPACKED_BYTES_MAX: Final = 64 << 20  # takes a fifth of a second; a longer body is not judged
_STEP_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 16 << 10
_MEMBER_BYTES: Final = 16 << 10  # a member takes time, however small
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


def is_whole(encodings: Iterable[bytes], body: bytes) -> bool:
    """Return whether a body ends with the end of its packing.

    Args:
        encodings: the Content-Encoding headers; the last coding counts.
        body: as received.
    """
    names = [word for header in encodings for part in header.split(b",") if (word := part.strip().lower())]
    if not names or not body:
        return False
    try:
        return _ends(names[-1], body)
    except Exception:  # noqa: BLE001 - each library has its own errors for a body that is not packed so
        return False


def _ends(name: bytes, body: bytes) -> bool:
    if body.startswith(_GZIP):
        return _gzip_ends(body)
    if body.startswith(_ZSTD):
        return _stream_ends(zstd.ZstdDecompressor(), body)
    if name == b"br":
        return _brotli_ends(body)
    try:
        return _stream_ends(zlib.decompressobj(), body)
    except zlib.error:
        return name == b"deflate" and _stream_ends(zlib.decompressobj(-zlib.MAX_WBITS), body)


def _gzip_ends(body: bytes) -> bool:
    """Whether the last of the members is whole; what follows is no part of it."""
    at, left = 0, UNPACKED_BYTES_MAX
    while body.startswith(_GZIP, at):
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not member.eof and left > 0:
            data = member.unconsumed_tail
            if not data:  # in small pieces, because what is left of one is copied for each member
                data = body[at : at + _PIECE_BYTES]
                at += len(data)
            if not data:
                break
            left -= len(member.decompress(data, _STEP_BYTES)) or 1
        if not member.eof:
            return False
        at -= len(member.unused_data)
        left -= _MEMBER_BYTES
    return True


def _stream_ends(stream: Any, body: bytes) -> bool:
    data, left = body, UNPACKED_BYTES_MAX
    while not stream.eof and left > 0:
        piece = stream.decompress(data, _STEP_BYTES)
        data = getattr(stream, "unconsumed_tail", b"")
        if not piece and not data:
            break
        left -= len(piece) or 1
    return bool(stream.eof)


def _brotli_ends(body: bytes) -> bool:
    stream, data, left = brotli.Decompressor(), body, UNPACKED_BYTES_MAX
    while not stream.is_finished() and left > 0:
        piece = stream.process(data, output_buffer_limit=_STEP_BYTES)
        data = b""
        if not piece:
            break
        left -= len(piece)
    return bool(stream.is_finished())
