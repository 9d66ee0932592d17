"""Unpacks gzip, and finds out from a compressed body itself whether it is complete: its length and chunks may be wrong.

Some servers compress a page and declare its uncompressed length. Chromium accepts that. A compressed stream marks its
own end and, in gzip and zlib, has a checksum.
"""

from __future__ import annotations

import re
import sys
import zlib
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import brotli  # type: ignore[import-untyped]
from scrapy.utils._compression import _check_max_size

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_padding = re.compile(rb"\0*+").match

UNPACKED_BYTES_MAX: Final = 64 << 20  # takes a fifth of a second; a longer body is not judged
_STEP_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 8 << 10
PARTS_MAX: Final = 4_096  # members of gzip, frames of zstd; each takes up to 10 us, however small
_OUT_BYTES: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b"
_GZIP_HEAD_BYTES: Final = 10
_GZIP_TAIL_BYTES: Final = 8
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


def gunzip(body: bytes, max_size: int = 0) -> tuple[bytes, bool]:
    """Unpack as much of a gzip file as possible, whatever its checksums, as Scrapy does; return also if it is whole.

    Python's own reader is not used, because it makes a call for each byte of a member's name.

    Raises:
        ValueError: it has too many members, or unpacks to more than `max_size` bytes, if that is not 0.
            EOFError, zlib.error: nothing could be unpacked.
    """
    unpacked, at, parts = BytesIO(), 0, PARTS_MAX
    try:
        while not at or body.startswith(_GZIP, at):
            at = _behind_head(body, at)
            part = zlib.decompressobj(-zlib.MAX_WBITS)
            while not part.eof:
                data = part.unconsumed_tail
                if not data:
                    data = body[at : at + _PIECE_BYTES]
                    at += len(data)
                _check_max_size(unpacked.tell() + unpacked.write(part.decompress(data, _OUT_BYTES)), max_size)
                if not data:
                    raise EOFError("a gzip file ends early")  # noqa: TRY301 - as zlib does
            parts -= 1
            if parts < 0:
                raise ValueError(f"a gzip file has more than {PARTS_MAX} members")
            at = _padding(body, at + _GZIP_TAIL_BYTES - len(part.unused_data)).end()  # type: ignore[union-attr]
    except (EOFError, zlib.error):
        if not unpacked.tell():
            raise
        return unpacked.getvalue(), False
    return unpacked.getvalue(), True


def _behind_head(body: bytes, at: int) -> int:
    head = body[at : at + _GZIP_HEAD_BYTES]
    if len(head) < _GZIP_HEAD_BYTES or not head.startswith(_GZIP):
        raise EOFError("no gzip file")
    flags, at = head[3], at + _GZIP_HEAD_BYTES
    if flags & 4:
        at += 2 + int.from_bytes(body[at : at + 2], "little")
    for text in (8, 16):
        if flags & text:
            at = body.find(b"\0", at) + 1
            if not at:
                raise EOFError("a gzip file ends within its header")
    return at + (flags & 2)


def is_whole(encodings: Iterable[bytes], body: bytes) -> bool:
    """Return whether a body contains the end of its compressed stream, for the last Content-Encoding."""
    names = [word for header in encodings for part in header.split(b",") if (word := part.strip().lower())]
    if not names or not body:
        return False
    try:
        return _is_complete_stream(names[-1], body)
    except Exception:  # noqa: BLE001 - each library has its own errors for a body that is not packed so
        return False


def _is_complete_stream(name: bytes, body: bytes) -> bool:
    if body.startswith(_GZIP):
        return _parts_end(body, _GZIP, partial(zlib.decompressobj, zlib.MAX_WBITS | 16))
    if body.startswith(_ZSTD):
        return _parts_end(body, _ZSTD, zstd.ZstdDecompressor)
    if name == b"br":
        return _brotli_ends(body)
    try:
        return _stream_ends(zlib.decompressobj(), body)
    except zlib.error:
        return name == b"deflate" and _stream_ends(zlib.decompressobj(-zlib.MAX_WBITS), body)


def _parts_end(body: bytes, magic: bytes, begin: Callable[[], Any]) -> bool:
    """Return whether the last of a body's members or frames is complete. Bytes after it belong to none."""
    at, left, parts = 0, UNPACKED_BYTES_MAX, PARTS_MAX
    while body.startswith(magic, at):
        part = begin()
        while not part.eof and left > 0:
            data = getattr(part, "unconsumed_tail", b"")
            if not data and getattr(part, "needs_input", True):
                # In small pieces, because each part copies what it leaves of its piece.
                data = body[at : at + _PIECE_BYTES]
                at += len(data)
                if not data:
                    break
            left -= len(part.decompress(data, _STEP_BYTES)) or 1
        parts -= 1
        if not part.eof or parts < 0:
            return False
        at -= len(part.unused_data)
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
