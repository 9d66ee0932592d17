"""Packs a WARC record as a gzip member, and unpacks the members of a file one after another, in pieces.

Memory: two buffers of `CHUNK` bytes, whatever the size of a file or a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

from isal import igzip_lib, isal_zlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Large enough to make the cost of a call negligible, small enough to check often whether to stop.
CHUNK = 256 * 1024
# isal's stub declares its exception as an instance.
_BadGzipError: type[Exception] = igzip_lib.error  # type: ignore[assignment]


# On a page of 21 KB isal's level 2 costs a quarter of zlib's default level, for files 3 % larger.
_GZIP_LEVEL = 2
_GZIP_WBITS = 31


def pack_member(record: bytes) -> bytes:
    """Return a record as a gzip member."""
    return isal_zlib.compress(record, _GZIP_LEVEL, _GZIP_WBITS)


class Sink(Protocol):
    """Receives the unpacked bytes of a member. Raises ValueError if they are invalid."""

    def feed(self, piece: bytes) -> None: ...

    def end(self) -> None: ...


def member_ends(file: BinaryIO, sink: Callable[[], Sink]) -> Iterator[int]:
    """Unpack gzip members one after another, each into a new sink; yield the offset after each.

    Raises:
        EOFError: the file ends within a member.
        ValueError: a member is damaged, or its sink rejects it.
    """
    data = file.read(CHUNK)
    offset = len(data)
    while data:
        member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        checker = sink()
        while not member.eof:
            if member.needs_input and not data:
                data = file.read(CHUNK)
                offset += len(data)
                if not data:
                    raise EOFError
            try:
                piece = member.decompress(data, CHUNK)
            except _BadGzipError as error:
                raise ValueError(f"cannot be unpacked ({error})") from error
            data = b""
            checker.feed(piece)
        checker.end()
        data = member.unused_data
        yield offset - len(data)
        if not data:
            data = file.read(CHUNK)
            offset += len(data)
