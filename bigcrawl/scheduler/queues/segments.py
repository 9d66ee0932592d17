"""Waiting URLs on disk: append-only segment files of compressed blocks (docs/file-formats.md).

The manifest says how many bytes of a segment are committed. Later bytes come from a failed step or a fenced owner: they
are never read, and the next append may overwrite them. A segment inherited from another epoch is sealed: appends go to
a new one.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.records.queued_url import BatchFormatError, QueuedUrl, decode_batch, encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory

SEGMENT_MAGIC = b"BCSEGM"
SEGMENT_VERSION = 1

# Segments are deleted and shipped as a whole. This keeps the dead bytes of a slow queue few.
SEGMENT_BYTES_MAX = 1 << 20

# In a queue that grows, a segment may reach a sixteenth of the rest: 10^8 URLs are some 100 files.
_GROWN_PART = 16

# A block is the unit of reading and of compression.
BLOCK_URLS_MAX = 64

_READ_AHEAD_BYTES = 16 << 10

_HEADER = struct.Struct("<6sH")
_BLOCK = struct.Struct("<III")

FIRST_BLOCK = _HEADER.size


class Segment(NamedTuple):
    number: int
    length: int
    urls: int


class BlockPlace(NamedTuple):
    segment: int
    offset: int
    urls: int


def in_blocks(urls: Sequence[QueuedUrl]) -> Iterator[Sequence[QueuedUrl]]:
    for start in range(0, len(urls), BLOCK_URLS_MAX):
        yield urls[start : start + BLOCK_URLS_MAX]


class SegmentLog:
    """The segments of one queue, or of several that share them. With `grows`, a long queue gets longer segments."""

    def __init__(
        self,
        epoch: EpochDirectory,
        prefix: str,
        segments: Iterable[Segment] = (),
        next_number: int = 0,
        *,
        grows: bool = False,
        tail_is_open: bool = False,
    ) -> None:
        self._epoch = epoch
        self._prefix = prefix
        self._grows = grows
        self._segments = {segment.number: segment for segment in segments}
        self._next_number = next_number
        self._tail_is_open = tail_is_open and bool(self._segments)
        self._ahead: tuple[int, int, bytes] = (-1, 0, b"")

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments.values())

    @property
    def next_number(self) -> int:
        return self._next_number

    @property
    def open_tail(self) -> int | None:
        return self._next_number - 1 if self._tail_is_open else None

    def fork(self) -> SegmentLog:
        segments = self._segments.values()
        return SegmentLog(
            self._epoch, self._prefix, segments, self._next_number, grows=self._grows, tail_is_open=self._tail_is_open
        )

    def name(self, number: int) -> str:
        return f"{self._prefix}-{number}"

    def names(self) -> list[str]:
        return [self.name(number) for number in self._segments]

    def append(self, blocks: Iterable[Sequence[QueuedUrl]]) -> list[BlockPlace]:
        """Write one block for each sequence, which must not be empty, and return their places in order."""
        places: list[BlockPlace] = []
        tail = self._open_tail()
        data: list[bytes] = []
        end, count = tail.length, tail.urls
        for urls in blocks:
            block = encode_block(urls)
            if end > FIRST_BLOCK and not self._has_room(tail, end + len(block)):
                self._write_block(tail, data, end, count)
                tail = self._new_tail()
                data, end, count = [], 0, 0
            if end == 0:
                data.append(_HEADER.pack(SEGMENT_MAGIC, SEGMENT_VERSION))
                end = FIRST_BLOCK
            places.append(BlockPlace(tail.number, end, len(urls)))
            data.append(block)
            end, count = end + len(block), count + len(urls)
        self._write_block(tail, data, end, count)
        return places

    def read(self, number: int, offset: int) -> tuple[list[QueuedUrl], int]:
        path = self._epoch.relative_path(self.name(number))
        end = self._segments[number].length
        if offset == FIRST_BLOCK:
            check_header(path, self._read_bytes(number, 0, FIRST_BLOCK))
        header = self._read_bytes(number, offset, _BLOCK.size)
        if len(header) < _BLOCK.size:
            raise CorruptionError(path, offset, f"a block before byte {end}", f"{len(header)} bytes")
        length, crc, count = _BLOCK.unpack(header)
        if offset + _BLOCK.size + length > end:
            raise CorruptionError(path, offset, f"a block that ends by byte {end}", f"{length} bytes")
        payload = self._read_bytes(number, offset + _BLOCK.size, length)
        found = isal_zlib.crc32(payload)
        if found != crc:
            raise CorruptionError(path, offset, f"block crc32 {crc:#010x}", f"{found:#010x}")
        try:
            urls = decode_batch(payload)
        except BatchFormatError as error:
            raise CorruptionError(path, offset, "a batch", error) from error
        if len(urls) != count:
            raise CorruptionError(path, offset, f"{count} URLs", f"{len(urls)}")
        return urls, offset + _BLOCK.size + length

    def forget_ahead(self) -> None:
        self._ahead = (-1, 0, b"")

    def _read_bytes(self, number: int, offset: int, size: int) -> bytes:
        """Return committed bytes of a segment, and keep bytes read ahead for later calls."""
        segment, start, data = self._ahead
        if segment != number or not start <= offset <= offset + size <= start + len(data):
            end = self._segments[number].length
            data = self._epoch.read(self.name(number), offset, min(end - offset, max(size, _READ_AHEAD_BYTES)))
            self._ahead, start = (number, offset, data), offset
        return data[offset - start : offset - start + size]

    def verify(self) -> list[CorruptionError]:
        problems: list[CorruptionError] = []
        self.forget_ahead()
        for segment in self._segments.values():
            try:
                self._verify_segment(segment)
            except CorruptionError as error:
                problems.append(error)
            except OSError as error:
                problems.append(
                    CorruptionError(self._epoch.relative_path(self.name(segment.number)), 0, "a readable file", error)
                )
        return problems

    def _verify_segment(self, segment: Segment) -> None:
        offset, count = FIRST_BLOCK, 0
        while offset < segment.length:
            urls, offset = self.read(segment.number, offset)
            count += len(urls)
        if count != segment.urls:
            path = self._epoch.relative_path(self.name(segment.number))
            raise CorruptionError(path, segment.length, f"{segment.urls} URLs", count)

    def forget_segment(self, number: int) -> None:
        """Forget a segment. Its file is deleted after a durable manifest."""
        del self._segments[number]
        if number == self._next_number - 1:
            self._tail_is_open = False

    def _check(self) -> None:
        numbers = list(self._segments)
        assert numbers == sorted(numbers), "segments are numbered in order of their beginning"
        assert all(number < self._next_number for number in numbers), "numbers are used once"
        assert all(segment.length > FIRST_BLOCK for segment in self._segments.values()), "no segment is empty"

    def _open_tail(self) -> Segment:
        if self._tail_is_open:
            tail = self._segments[self._next_number - 1]
            if self._has_room(tail, tail.length + 1):
                return tail
        return self._new_tail()

    def _has_room(self, tail: Segment, end: int) -> bool:
        if end <= SEGMENT_BYTES_MAX:
            return True
        others = sum(segment.length for segment in self._segments.values() if segment.number != tail.number)
        return self._grows and end <= others // _GROWN_PART

    def _new_tail(self) -> Segment:
        return Segment(self._next_number, 0, 0)

    def _write_block(self, tail: Segment, data: list[bytes], end: int, count: int) -> None:
        if not data:
            return
        self._epoch.write_at(self.name(tail.number), tail.length, b"".join(data))
        self._segments[tail.number] = Segment(tail.number, end, count)
        self._next_number = tail.number + 1
        self._tail_is_open = True


def encode_block(urls: Sequence[QueuedUrl]) -> bytes:
    payload = encode_batch(urls)
    return _BLOCK.pack(len(payload), isal_zlib.crc32(payload), len(urls)) + payload


def check_header(path: str, data: bytes) -> None:
    if len(data) < FIRST_BLOCK:
        raise CorruptionError(path, 0, f"a header of {FIRST_BLOCK} bytes", f"{len(data)} bytes")
    magic, version = _HEADER.unpack_from(data)
    if magic != SEGMENT_MAGIC or version != SEGMENT_VERSION:
        expected = f"{SEGMENT_MAGIC!r} version {SEGMENT_VERSION}"
        raise CorruptionError(path, 0, expected, f"{magic!r} version {version}")
