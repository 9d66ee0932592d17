"""PolyBot's file of URLs: sorted text, each URL without the prefix it shares with the one before it.

    block   u16 URLs, u32 bytes of suffixes, then of each URL u8 bytes shared, then of each u8 bytes of suffix,
            then the suffixes; little-endian

A block shares nothing with the one before it, so that only blocks into which a URL falls need be taken apart; all
are read and written. A URL has at most 255 bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from benchmarks.drum_cost.method import SPAN_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bigcrawl.drum.files import Files

# 128 URLs a block cost one URL without a prefix, 0.9 bytes a URL, and spare taking most of them apart.
BLOCK_URLS: Final = 128
_HEAD: Final = struct.Struct("<HI")


class FrontCodedFile:
    """A sorted set of URLs in one file; it exists once a URL is in it."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self._next = path.with_name(path.name + ".next")
        self._count = 0
        self._bytes = 0
        self._entries_written = 0
        self._bytes_written = 0

    def __len__(self) -> int:
        return self._count

    @property
    def bytes_a_url(self) -> float:
        """The paper's bq: mean over all URLs that were written, each as often as it was; 0 before the first."""
        return self._bytes_written / max(self._entries_written, 1)

    def check_update(self, urls: Sequence[bytes]) -> list[bytes]:
        """Return which of the strictly ascending URLs are new, and add them: one pass of reading and writing."""
        new: list[bytes] = []
        self._files.write_new(self._next, self._merged(urls, new))
        # No renaming over the old one: some file systems would wait for the disk.
        self._files.unlink(self._path)
        self._path, self._next = self._next, self._path
        self._count += len(new)
        self._bytes = self._files.size(self._path)
        self._entries_written += self._count
        self._bytes_written += self._bytes
        return new

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks():
            yield from decode(block)

    def _merged(self, urls: Sequence[bytes], new: list[bytes]) -> Iterator[bytes]:
        """Yield the file from now on; a URL belongs to the last block that begins at or before it, or the first."""
        at = 0
        block = b""
        written: list[bytes] = []
        for following in self._blocks():
            if block:
                end = bisect_left(urls, first_of(following), at)
                written += _with_urls(block, urls[at:end], new)
                at = end
                if len(written) >= BLOCK_URLS:
                    yield b"".join(written)
                    written = []
            block = following
        written += _with_urls(block, urls[at:], new)
        yield b"".join(written)

    def _blocks(self) -> Iterator[bytes]:
        rest = b""
        for offset in range(0, self._bytes, SPAN_BYTES):
            data = rest + self._files.read(self._path, offset, min(SPAN_BYTES, self._bytes - offset))
            at = 0
            while (end := _end_of_block(data, at)) is not None:
                yield data[at:end]
                at = end
            rest = data[at:]
        assert not rest, "the file ends with a block"


def _end_of_block(data: bytes, at: int) -> int | None:
    """Where the block at `at` ends, or None where the data does before it."""
    if len(data) - at < _HEAD.size:
        return None
    count, suffix_bytes = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + 2 * int(count) + int(suffix_bytes)
    return end if end <= len(data) else None


def _with_urls(block: bytes, urls: Sequence[bytes], new: list[bytes]) -> list[bytes]:
    """The block with the URLs that it has not, which also go to `new`; cut in two or more when it grew long."""
    if not urls:
        return [block] if block else []
    held = decode(block) if block else []
    known = set(held)
    unseen = [url for url in urls if url not in known]
    if not unseen:
        return [block]
    new += unseen
    # Only what is new, and what comes behind it, shares another prefix than before.
    shared = list(block[_HEAD.size : _HEAD.size + len(held)])
    for url in unseen:
        place = bisect_left(held, url)
        held.insert(place, url)
        shared.insert(place, _shared_bytes(held[place - 1], url) if place else 0)
        if place + 1 < len(held):
            shared[place + 1] = _shared_bytes(url, held[place + 1])
    size = len(held) if len(held) < 2 * BLOCK_URLS else BLOCK_URLS
    return [encode(held[start : start + size], shared[start : start + size]) for start in range(0, len(held), size)]


def encode(urls: Sequence[bytes], shared: Sequence[int]) -> bytes:
    """Return a block of ascending URLs, of at most 255 bytes each; `shared` is what each has of the one before it."""
    # A block begins with a whole URL.
    kept = [0, *shared[1:]]
    suffixes = [url[start:] for url, start in zip(urls, kept, strict=True)]
    text = b"".join(suffixes)
    return _HEAD.pack(len(urls), len(text)) + bytes(kept) + bytes(map(len, suffixes)) + text


def decode(block: bytes) -> list[bytes]:
    """Return the URLs of a block."""
    count = int(_HEAD.unpack_from(block)[0])
    shared = block[_HEAD.size : _HEAD.size + count]
    lengths = block[_HEAD.size + count : _HEAD.size + 2 * count]
    ends = accumulate(lengths, initial=_HEAD.size + 2 * count)
    urls: list[bytes] = []
    url = b""
    start = next(ends)
    for kept, end in zip(shared, ends, strict=True):
        url = url[:kept] + block[start:end]
        urls.append(url)
        start = end
    return urls


def first_of(block: bytes) -> bytes:
    """Return the first URL of a block, which stands in it whole."""
    count = int(_HEAD.unpack_from(block)[0])
    start = _HEAD.size + 2 * count
    return block[start : start + block[_HEAD.size + count]]


def _shared_bytes(one: bytes, other: bytes) -> int:
    """How many bytes two URLs have in common from the start."""
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (differing.bit_length() + 7) // 8
