"""Divides WARC files into records, even behind damage.

Damage costs only the record that it hits: the next record is searched for. A page may contain records, so the next one
must name the same warcinfo record as the one before, which pages cannot know.
"""

from __future__ import annotations

import importlib
import os
import re
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Protocol

from isal import igzip_lib

from bigcrawl.exceptions import ConfigError
from bigcrawl.warc.heads import FEW_HEAD_BYTES, HEAD_BYTES_MAX, find_starts, length_of, record_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Small enough to check often whether to stop.
CHUNK = 256 * 1024
TORN: Final = "torn"
# isal's stub declares its exception as an instance.
_BadGzipError: type[Exception] = igzip_lib.error  # type: ignore[assignment]
_GZIP_MARK: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_DICTIONARY: Final = b"\x5d\x2a\x4d\x18"  # the skippable frame that a .warc.zst may begin with
_DICTIONARY_BYTES_MAX: Final = 16 << 20
_PROBE_BYTES: Final = 4_096
_LINE_ENDS_MAX: Final = 8


class RecordSink(Protocol):
    def feed(self, piece: bytes) -> None: ...

    def end(self) -> str:
        """Return what is wrong with a complete record; "" if nothing."""


class Unpacker(Protocol):
    needs_input: bool
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, _max_length: int, /) -> bytes: ...


class FileSpan(NamedTuple):
    """A part of a file: a record, or bytes with a `problem`; `is_whole` if the member can be decompressed."""

    begin: int
    end: int
    problem: str = ""
    is_whole: bool = True


class RecordPacking(NamedTuple):
    """How the records of a file are compressed; not at all without an `unpacker`.

    `mark` is a pattern for the first bytes of a member; `skips_empty` says whether members may be empty.
    """

    unpacker: Callable[[], Unpacker] | None
    errors: tuple[type[Exception], ...] = ()
    mark: bytes = b""
    skips_empty: bool = False


_PLAIN: Final = RecordPacking(None)
GZIP: Final = RecordPacking(
    lambda: igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP),
    (_BadGzipError,),
    rb"\x1f\x8b\x08[\x00-\x1f]",
)


def packing_of(path: Path) -> RecordPacking:
    """Return how a file is compressed, by its first bytes or its name."""
    with path.open("rb") as file:
        begin = file.read(HEAD_BYTES_MAX)
        if begin.startswith(_GZIP_MARK):
            return GZIP
        if begin.startswith((_ZSTD, _ZSTD_DICTIONARY)):
            return _zstd_packing(path, file)
    if path.suffix == ".zst" and begin:
        return _zstd_packing(path, None)
    return _PLAIN if path.suffix in (".warc", ".arc") or record_head(begin) is not None else GZIP


def spans_of_file(
    file: BinaryIO, sink: Callable[[], RecordSink], packing: RecordPacking = GZIP, at: int = 0
) -> Iterator[FileSpan]:
    """Divide a file into spans from an offset, and feed each record to a new sink. Only OSError is raised."""
    if packing.unpacker is None:
        return _plain_spans(file, sink, at)
    return _member_spans(file, sink, packing, at)


def _member_spans(
    file: BinaryIO, sink: Callable[[], RecordSink], packing: RecordPacking, begin: int
) -> Iterator[FileSpan]:
    unpacker, errors = packing.unpacker, packing.errors
    assert unpacker is not None
    file.seek(begin)
    before = -1
    data = file.read(CHUNK)
    offset = begin + len(data)
    while data:
        member = unpacker()
        checker = sink()
        problem = ""
        is_empty = True
        try:
            while not member.eof:
                if member.needs_input and not data:
                    data = file.read(CHUNK)
                    offset += len(data)
                    if not data:
                        problem = TORN
                        break
                piece = member.decompress(data, CHUNK)
                data = b""
                checker.feed(piece)
                is_empty = is_empty and not piece
        except errors as error:
            problem = f"cannot be unpacked ({error})"
        if problem:
            found = _next_member(file, begin + 1, packing, _warcinfo_at(file, before, packing))
            if found is None:
                yield FileSpan(begin, file.seek(0, os.SEEK_END), problem, False)
                return
            yield FileSpan(begin, found, "cannot be unpacked" if problem == TORN else problem, False)
            begin = file.seek(found)
            data = file.read(CHUNK)
            offset = begin + len(data)
            continue
        data = member.unused_data
        end = offset - len(data)
        if not (is_empty and packing.skips_empty):
            yield FileSpan(begin, end, checker.end())
            before = begin
        begin = end
        if not data:
            file.seek(offset)
            data = file.read(CHUNK)
            offset += len(data)


def _next_member(file: BinaryIO, at: int, packing: RecordPacking, warcinfo: bytes) -> int | None:
    """Return the offset of the next member with a record of this warcinfo."""
    find = re.compile(packing.mark, re.DOTALL).finditer
    while True:
        file.seek(at)
        data = file.read(CHUNK)
        for mark in find(data):
            head = _unpack_beginning(data[mark.start() : mark.start() + _PROBE_BYTES], packing)
            if head and not _is_record(head, warcinfo):  # may be cut
                file.seek(at + mark.start())
                head = _unpack_beginning(file.read(HEAD_BYTES_MAX), packing)
            if _is_record(head, warcinfo):
                return at + mark.start()
        if len(data) < CHUNK:
            return None
        at += CHUNK - 3


def _unpack_beginning(data: bytes, packing: RecordPacking) -> bytes:
    assert packing.unpacker is not None
    try:
        return packing.unpacker().decompress(data, HEAD_BYTES_MAX)
    except packing.errors:
        return b""


def _warcinfo_at(file: BinaryIO, offset: int, packing: RecordPacking) -> bytes:
    if offset < 0:
        return b""
    file.seek(offset)
    data = file.read(HEAD_BYTES_MAX)
    found = record_head(_unpack_beginning(data, packing) if packing.unpacker else data)
    return _warcinfo_of(found[0]) if found else b""


def _warcinfo_of(fields: dict[bytes, bytes]) -> bytes:
    is_one = fields.get(b"warc-type") == b"warcinfo"
    return fields.get(b"warc-record-id" if is_one else b"warc-warcinfo-id", b"")


def _is_record(begin: bytes, warcinfo: bytes) -> bool:
    found = record_head(begin)
    return found is not None and (not warcinfo or _warcinfo_of(found[0]) == warcinfo)


def _plain_spans(file: BinaryIO, sink: Callable[[], RecordSink], begin: int) -> Iterator[FileSpan]:
    size = file.seek(0, os.SEEK_END)
    before = -1
    while begin < size:
        file.seek(begin)
        found = record_head(file.read(HEAD_BYTES_MAX))
        warcinfo = _warcinfo_of(found[0]) if found else _warcinfo_at(file, before, _PLAIN)
        end = _plain_end(file, begin + found[1], length_of(found[0]), size) if found else None
        if end is None:
            end = _next_plain(file, begin + 1, warcinfo)
        if found is None:
            yield FileSpan(begin, end or size, "no record begins there", False)
        elif end is None:
            yield FileSpan(begin, size, TORN, False)
        else:
            checker = sink()
            file.seek(begin)
            for at in range(begin, end, CHUNK):
                checker.feed(file.read(min(CHUNK, end - at)))
            yield FileSpan(begin, end, checker.end())
            before = begin
        begin = end or size


def _plain_end(file: BinaryIO, block_at: int, told: int | None, size: int) -> int | None:
    if told is None or block_at + told > size:
        return None
    file.seek(block_at + told)
    behind = file.read(HEAD_BYTES_MAX)
    ends = len(behind[:_LINE_ENDS_MAX]) - len(behind[:_LINE_ENDS_MAX].lstrip(b"\r\n"))
    is_end = not behind[ends:] or behind.startswith((b"\r\n\r\n", b"\n\n")) or record_head(behind[ends:]) is not None
    return block_at + told + ends if is_end else None


def _next_plain(file: BinaryIO, at: int, warcinfo: bytes) -> int | None:
    while True:
        file.seek(at)
        data = file.read(CHUNK)
        for start in find_starts(data, 1):
            if _is_record(data[start.start() : start.start() + FEW_HEAD_BYTES], warcinfo):
                return at + start.start()
        if len(data) < CHUNK:
            return None
        at += CHUNK - HEAD_BYTES_MAX


def _zstd_packing(path: Path, file: BinaryIO | None) -> RecordPacking:
    try:
        zstd: Any = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        raise ConfigError(f"{path} is compressed with zstd: pip install 'bigcrawl[zstd]'") from None
    dictionary = None
    if file is not None:
        file.seek(0)
        mark, size = struct.unpack("<4sI", file.read(8).ljust(8, b"\0"))
        if mark == _ZSTD_DICTIONARY and size <= _DICTIONARY_BYTES_MAX:
            content = file.read(size)
            with suppress(zstd.ZstdError, ValueError):  # then every record is reported as damaged
                if content.startswith(_ZSTD):
                    content = zstd.ZstdDecompressor().decompress(content, _DICTIONARY_BYTES_MAX)
                dictionary = zstd.ZstdDict(content)
    return RecordPacking(
        lambda: zstd.ZstdDecompressor(dictionary), (zstd.ZstdError,), re.escape(_ZSTD), skips_empty=True
    )
