"""Writing a run, and asking an existing one which keys it holds.

A run is opened for one call and not held. Few keys against many are looked up by binary search in the
mapped file, which reads about one new page a key; many keys are compared with every block in order, in
spans of bounded size. Either way each block that decided an answer has its checksum verified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from isal import isal_zlib

from bigcrawl.drum.format import (
    BLOCK_BYTES,
    BLOCK_KEYS,
    HEADER_BYTES,
    KEY_BYTES,
    KEY_TYPE,
    RunHeader,
    blocks_of,
    decode_crc_table,
    decode_header,
    encode_crc_table,
    encode_header,
    run_bytes,
)
from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import CrcArray, KeyArray

    KeyMask = npt.NDArray[np.bool_]

# A span is what one sequential read brings: 1 MiB, so that a merge of 8 runs holds 8 MiB.
SPAN_KEYS = 256 * BLOCK_KEYS

# Up to sixteen blocks.
_WHOLE_BYTES_MAX = 64 << 10

# Above one key for every four blocks, reading the run in order is cheaper than searching in it.
_STREAM_ABOVE = 4


class RunInfo(NamedTuple):
    """A run as its owner's manifest remembers it."""

    name: str
    keys: int
    first: int
    last: int


def write_run(files: Files, path: Path, chunks: Iterable[KeyArray], header: RunHeader) -> RunInfo:
    """Write a run whole; nothing refers to it until the caller's manifest does.

    Args:
        files: the file system.
        path: where; one of that name is overwritten.
        chunks: strictly ascending keys, over all chunks together exactly `header.keys`.
        header: how many keys, the first and the last.

    Raises:
        ContractError: the chunks are not what the header says.
    """
    files.write_new(path, _run_parts(chunks, header))
    return RunInfo(path.name, *header)


def _run_parts(chunks: Iterable[KeyArray], header: RunHeader) -> Iterator[bytes]:
    yield encode_header(header)
    crcs: list[int] = []
    rest = np.empty(0, dtype=KEY_TYPE)
    written, previous = 0, -1
    for chunk in chunks:
        if not len(chunk):
            continue
        if int(chunk[0]) <= previous or not bool(np.all(chunk[:-1] < chunk[1:])):
            raise ContractError(f"keys of a run must ascend strictly; they do not behind {previous}")
        previous = int(chunk[-1])
        keys = np.concatenate((rest, chunk)) if len(rest) else chunk
        whole = len(keys) - len(keys) % BLOCK_KEYS
        rest = keys[whole:]
        written += len(chunk)
        if whole:
            yield _add_blocks(keys[:whole], crcs)
    if len(rest):
        yield _add_blocks(rest, crcs)
    if written != header.keys or previous != header.last:
        raise ContractError(f"a run of {header.keys} keys to {header.last} got {written} to {previous}")
    yield encode_crc_table(crcs)


def _add_blocks(keys: KeyArray, crcs: list[int]) -> bytes:
    data = keys.astype(KEY_TYPE, copy=False).tobytes()
    view = memoryview(data)
    crcs.extend(isal_zlib.crc32(view[i : i + BLOCK_BYTES]) for i in range(0, len(data), BLOCK_BYTES))
    return data


class RunReader:
    """One run, opened for a call.

    Raises (from any method):
        CorruptionError: header, length, table or a block that was read is damaged.
    """

    def __init__(self, files: Files, directory: Path, info: RunInfo) -> None:
        self._files = files
        self._path = directory / info.name
        # A small run costs one read; only large ones are worth searching where they lie.
        self._is_small = run_bytes(info.keys) <= _WHOLE_BYTES_MAX
        data = self._open()
        header = decode_header(self._path, bytes(data[:HEADER_BYTES]), len(data))
        if header != info[1:]:
            raise CorruptionError(self._path, 16, f"run {info}", f"{header}")
        self._count, self._first, self._last = header
        self._crcs: CrcArray = decode_crc_table(
            self._path, bytes(data[HEADER_BYTES + self._count * KEY_BYTES :]), self._count
        )
        self._data = data

    def __repr__(self) -> str:
        return f"<RunReader {self._path.name} keys={self._count}>"

    def contains(self, keys: KeyArray) -> KeyMask:
        """Return which of the strictly ascending keys the run holds."""
        found = np.zeros(len(keys), dtype=np.bool_)
        low = int(np.searchsorted(keys, np.uint64(self._first)))
        high = int(np.searchsorted(keys, np.uint64(self._last), side="right"))
        if low < high:
            if self._is_small or (high - low) * _STREAM_ABOVE > blocks_of(self._count):
                self._compare_all(keys, found)
            else:
                found[low:high] = self._search(keys[low:high])
        return found

    def spans(self) -> Iterator[KeyArray]:
        """Yield all keys in order, at most `SPAN_KEYS` at a time, each block verified."""
        for start in range(0, self._count, SPAN_KEYS):
            length = min(SPAN_KEYS, self._count - start)
            offset = HEADER_BYTES + start * KEY_BYTES
            view = self._read(offset, length * KEY_BYTES)
            self._verify_blocks(start // BLOCK_KEYS, view)
            yield np.frombuffer(view, dtype=KEY_TYPE)

    def _open(self) -> memoryview:
        if self._is_small:
            return memoryview(self._files.read(self._path))
        # An empty file cannot be mapped.
        return memoryview(self._files.map(self._path) if self._files.size(self._path) else b"")

    def _read(self, offset: int, size: int) -> memoryview:
        if self._is_small:
            return self._data[offset : offset + size]
        return memoryview(self._files.read(self._path, offset, size))

    def verify(self) -> None:
        """Read every block and check that the keys ascend."""
        previous = -1
        for span in self.spans():
            if int(span[0]) <= previous or not bool(np.all(span[:-1] < span[1:])):
                raise CorruptionError(self._path, HEADER_BYTES, "strictly ascending keys", "others")
            previous = int(span[-1])

    def _compare_all(self, keys: KeyArray, found: KeyMask) -> None:
        for span in self.spans():
            low = int(np.searchsorted(keys, span[0]))
            high = int(np.searchsorted(keys, span[-1], side="right"))
            if low < high:
                wanted = keys[low:high]
                found[low:high] = span[np.searchsorted(span, wanted)] == wanted

    def _search(self, keys: KeyArray) -> KeyMask:
        held = np.frombuffer(self._data, dtype=KEY_TYPE, count=self._count, offset=HEADER_BYTES)
        places = np.searchsorted(held, keys)
        # Each search ends between two neighbours that it has read. If both are sound it was not misled, by
        # whatever damage on its way; no key is above the header's last, so none ends behind the last one.
        ends = np.minimum(places, self._count - 1)
        before = np.maximum(places, 1) - 1
        for block in np.unique(np.concatenate((ends, before)) // BLOCK_KEYS).tolist():
            at = HEADER_BYTES + block * BLOCK_BYTES
            end = min(at + BLOCK_BYTES, HEADER_BYTES + self._count * KEY_BYTES)
            self._verify_blocks(block, self._data[at:end])
        answer: KeyMask = held[ends] == keys
        return answer

    def _verify_blocks(self, first: int, data: memoryview) -> None:
        """Check neighbouring blocks, of which only the run's last may be short."""
        found = [isal_zlib.crc32(data[at : at + BLOCK_BYTES]) for at in range(0, len(data), BLOCK_BYTES)]
        stored = self._crcs[first : first + len(found)].tolist()
        if found != stored:
            wrong = next(place for place, crc in enumerate(found) if crc != stored[place])
            offset = HEADER_BYTES + (first + wrong) * BLOCK_BYTES
            expected = f"block crc32 {stored[wrong]:#010x}"
            raise CorruptionError(self._path, offset, expected, f"{found[wrong]:#010x}")
