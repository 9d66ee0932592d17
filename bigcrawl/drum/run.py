"""Writes runs, and looks up keys in them.

A few keys are looked up in a large run through its directory; many keys are compared with all records in order. The
checksum of each block that an answer depends on is verified.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from isal import isal_zlib

from bigcrawl.drum.format import (
    BLOCK_BYTES,
    CRC_BYTES,
    CRC_TYPE,
    GROUP_PREFIXES,
    KEY_BYTES,
    KEY_TYPE,
    TRAILER_BYTES,
    Records,
    RunLayout,
    best_suffix_bytes,
    column,
    decode_directory,
    decode_suffixes,
    decode_trailer,
    decode_values,
    encode_directory,
    encode_records,
    encode_trailer,
    group_type,
    groups_of,
    prefixes_of,
)
from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import Buffer, CountArray, KeyArray, KeyMask, ValueArray

    Keep = Callable[[KeyArray, ValueArray | None], KeyMask]

# How many records to read at a time; a merge holds so many of each run.
SPAN_KEYS = 1 << 16

# Reading up to sixteen blocks is cheaper than mapping them.
_WHOLE_BYTES_MAX = 16 * BLOCK_BYTES

# Costs of searching one key and of decoding one prefix, in records read in order.
_RECORDS_PER_SEARCH = 200
_RECORDS_PER_PREFIX = 3

# Up to so many keys, looking them up one by one costs less than array operations.
_FEW_KEYS = 64

_GROUPS = {size: struct.Struct(f"<Q{GROUP_PREFIXES}{code}") for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))}


class RunInfo(NamedTuple):
    name: str
    keys: int
    first: int
    last: int
    length: int  # bytes of the file


class RunBounds(NamedTuple):
    """Bounds on a run to be written: on its number of keys, its first and its last key."""

    keys: int
    first: int
    last: int


def write_run(files: Files, path: Path, chunks: Iterable[Records], bounds: RunBounds) -> RunInfo | None:
    """Write a complete run, or if there are no keys, nothing, and return None. Tight bounds give a short run."""
    filled = (chunk for chunk in chunks if len(chunk.keys))
    first = next(filled, None)
    if first is None:
        return None
    writer = _RunWriter(first, bounds)
    files.write_new(path, writer.encoded_parts(filled))
    layout = writer.layout
    return RunInfo(path.name, layout.keys, layout.first, layout.last, layout.length)


class _RunWriter:
    def __init__(self, head: Records, bounds: RunBounds) -> None:
        self._head = head
        self._bounds = bounds
        self._suffix_bytes = best_suffix_bytes(bounds.keys, bounds.last - bounds.first)
        self._counts: CountArray = np.zeros(prefixes_of(bounds.last - bounds.first, self._suffix_bytes), dtype=np.int64)
        self._crcs: list[int] = []
        self._rest = b""
        value_bytes = head.values.dtype.itemsize if head.values is not None else 0
        first = int(head.keys[0])
        self.layout = RunLayout(self._suffix_bytes, 0, value_bytes, 0, first, bounds.first - 1, bounds.first)

    def encoded_parts(self, chunks: Iterator[Records]) -> Iterator[bytes]:
        """Yield the bytes of the run. Afterwards, `layout` is complete."""
        yield self._whole_blocks(self._add_chunk(self._head))
        for chunk in chunks:
            yield self._whole_blocks(self._add_chunk(chunk))
        directory, count_bytes = encode_directory(self._counts[: self.layout.prefixes])
        self.layout = self.layout._replace(count_bytes=count_bytes)
        yield self._whole_blocks(directory)
        if self._rest:
            self._crcs.append(isal_zlib.crc32(self._rest))
        table = np.array(self._crcs, dtype=CRC_TYPE).tobytes()
        yield self._rest + table + encode_trailer(self.layout, table)

    def _add_chunk(self, chunk: Records) -> bytes:
        keys, before, bounds = chunk.keys, self.layout, self._bounds
        count, last = before.keys + len(keys), int(keys[-1])
        if int(keys[0]) <= before.last or not bool(np.all(keys[:-1] < keys[1:])):
            raise ContractError(f"keys of a run must ascend strictly; they do not after {before.last}")
        if count > bounds.keys or last > bounds.last:
            raise ContractError(f"a run got {count} keys up to {last}, beyond {bounds}")
        self.layout = before._replace(keys=count, last=last)
        if self._suffix_bytes == KEY_BYTES:
            self._counts[0] += len(keys)
        else:
            prefixes = (keys - np.uint64(bounds.first)) >> np.uint64(8 * self._suffix_bytes)
            low = int(prefixes[0])
            counts = np.bincount((prefixes - prefixes[0]).astype(np.int64))
            self._counts[low : low + len(counts)] += counts
        return encode_records(chunk, bounds.first, self._suffix_bytes)

    def _whole_blocks(self, data: bytes) -> bytes:
        data = self._rest + data
        whole = len(data) - len(data) % BLOCK_BYTES
        self._rest = data[whole:]
        view = memoryview(data)
        self._crcs.extend(isal_zlib.crc32(view[at : at + BLOCK_BYTES]) for at in range(0, whole, BLOCK_BYTES))
        return data[:whole]


class RunReader:
    """An open run. Every method raises CorruptionError for damage in what it reads."""

    def __init__(self, files: Files, directory: Path, info: RunInfo, value: np.dtype[Any] | None = None) -> None:
        self._files = files
        self._path = f"{directory}/{info.name}"
        self._value = value
        self._is_small = info.length <= _WHOLE_BYTES_MAX
        self._data = self._map_file()
        size = len(self._data)
        layout, table_crc = decode_trailer(self._path, self._data[-TRAILER_BYTES:], size)
        value_bytes = value.itemsize if value is not None else 0
        if (layout.keys, layout.first, layout.last, size, layout.value_bytes) != (*info[1:], value_bytes):
            expected = f"{info} with values of {value_bytes} bytes"
            raise CorruptionError(self._path, size - TRAILER_BYTES, expected, layout)
        self._layout = layout
        self._table_at = layout.table
        self._table = self._data[self._table_at : -TRAILER_BYTES]
        found = isal_zlib.crc32(self._table)
        if found != table_crc:
            expected = f"checksum table crc32 {table_crc:#010x}"
            raise CorruptionError(self._path, self._table_at, expected, f"{found:#010x}")
        self._view = memoryview(self._data)[: self._table_at]
        self._sound: set[int] = set()

    def find(self, keys: KeyArray) -> tuple[KeyMask, ValueArray | None]:
        """Return which of the keys, given in strictly ascending order, the run holds, and their values, zero if absent.

        Cost: for a few keys 3 µs each, for many 1 µs each, or 4 ns for each record if that is less; at least 40 µs.
        """
        found = np.zeros(len(keys), dtype=np.bool_)
        values = np.zeros(len(keys), dtype=self._value) if self._value is not None else None
        low = int(keys.searchsorted(np.uint64(self._layout.first)))
        high = int(keys.searchsorted(np.uint64(self._layout.last), side="right"))
        asked = high - low
        if asked * _RECORDS_PER_SEARCH > self._layout.keys + self._layout.prefixes * _RECORDS_PER_PREFIX:
            self._compare_all(keys, found, values)
        elif asked > _FEW_KEYS:
            self._search_many(keys, low, high, found, values)
        elif asked:
            self._search_few(keys, low, high, found, values)
        return found, values

    def spans(self) -> Iterator[Records]:
        """Yield all records in order, verified, in chunks of `SPAN_KEYS`."""
        layout = self._layout
        data, offset = self._read_verified(layout.directory, layout.table)
        ends = decode_directory(self._path, memoryview(data)[offset:], layout)
        for start in range(0, layout.keys, SPAN_KEYS):
            end = min(start + SPAN_KEYS, layout.keys)
            # Eight bytes are loaded from the start of each suffix; the directory follows the last one.
            data, offset = self._read_verified(start * layout.record_bytes, end * layout.record_bytes + KEY_BYTES)
            keys = decode_suffixes(data, offset, end - start, layout)
            if layout.suffix_bytes < KEY_BYTES:
                low, high = (int(place) for place in ends.searchsorted((start, end - 1), side="right"))
                # A record's prefix is the number of prefixes that end at or before its index.
                ended = np.bincount(ends[low:high] - start, minlength=end - start)
                prefixes = (np.cumsum(ended) + low).astype(np.uint64)
                keys |= prefixes << np.uint64(layout.suffix_bits)
            keys += np.uint64(layout.base)
            value = self._value
            yield Records(keys, decode_values(data, offset, end - start, layout, value) if value is not None else None)

    def verify(self) -> None:
        previous = -1
        for keys, _ in self.spans():
            if int(keys[0]) <= previous or not bool(np.all(keys[:-1] < keys[1:])):
                raise CorruptionError(self._path, 0, "strictly ascending keys", "others")
            if previous < 0 and int(keys[0]) != self._layout.first:
                raise CorruptionError(self._path, 0, f"first key {self._layout.first}", int(keys[0]))
            previous = int(keys[-1])
        if previous != self._layout.last:
            raise CorruptionError(self._path, self._layout.directory, f"last key {self._layout.last}", previous)

    def _map_file(self) -> bytes | mmap.mmap:
        if self._is_small:
            return self._files.read(self._path)
        try:
            return self._files.map(self._path)
        except ValueError:  # an empty file cannot be mapped
            return b""

    def _read_verified(self, start: int, end: int) -> tuple[Buffer, int]:
        low, high = start - start % BLOCK_BYTES, min(end + -end % BLOCK_BYTES, self._table_at)
        data = self._view[low:high] if self._is_small else self._files.read(self._path, low, high - low)
        self._verify_blocks(low // BLOCK_BYTES, memoryview(data))
        return data, start - low

    def _compare_all(self, keys: KeyArray, found: KeyMask, values: ValueArray | None) -> None:
        for span in self.spans():
            low = int(keys.searchsorted(span.keys[0]))
            high = int(keys.searchsorted(span.keys[-1], side="right"))
            if low == high:
                continue
            here, there = _common_indices(keys[low:high], span.keys)
            found[low + here] = True
            if values is not None and span.values is not None:
                values[low + here] = span.values[there]

    def _search_few(self, keys: KeyArray, low: int, high: int, found: KeyMask, values: ValueArray | None) -> None:
        layout, data = self._layout, self._data
        base, bits, size, record_bytes = layout.base, layout.suffix_bits, layout.suffix_bytes, layout.record_bytes
        directory, group_bytes = layout.directory, layout.group_bytes
        mask, group_at = (1 << bits) - 1, _GROUPS[layout.count_bytes].unpack_from
        for place, key in enumerate(keys[low:high].tolist(), low):
            prefix = (key - base) >> bits
            at = directory + prefix // GROUP_PREFIXES * group_bytes
            self._check_blocks(at, at + group_bytes)
            group = group_at(data, at)
            nth = prefix % GROUP_PREFIXES + 1
            start = sum(group[:nth]) * record_bytes  # the group's start and the counts before
            end = start + group[nth] * record_bytes
            if start == end:
                continue
            self._check_blocks(start, end)
            suffix = ((key - base) & mask).to_bytes(size, "little")
            at = data.find(suffix, start, end)
            while at >= 0 and (at - start) % record_bytes:
                at = data.find(suffix, at + 1, end)
            if at >= 0:
                found[place] = True
                if values is not None:
                    values[place] = np.frombuffer(data, values.dtype, 1, at + size)[0]

    def _search_many(self, keys: KeyArray, low: int, high: int, found: KeyMask, values: ValueArray | None) -> None:
        """Like `_search_few`, but for all keys at once, by binary search."""
        layout, bits = self._layout, np.uint64(self._layout.suffix_bits)
        differences = keys[low:high] - np.uint64(layout.base)
        prefixes = (differences >> bits if layout.suffix_bytes < KEY_BYTES else differences * 0).astype(np.int64)
        start, end = self._group_places(prefixes)
        self._verify_all(start * layout.record_bytes, end * layout.record_bytes)
        suffixes = column(self._data, 0, layout.keys, layout.record_bytes, KEY_TYPE)
        mask = np.uint64((1 << layout.suffix_bits) - 1)
        wanted = differences & mask
        left, right = start, end
        for _ in range(int((end - start).max()).bit_length()):
            middle = (left + right) >> 1
            # Where left has met right, both stay.
            is_below = (suffixes[np.minimum(middle, layout.keys - 1)] & mask < wanted) & (left < right)
            left = np.where(is_below, middle + 1, left)
            right = np.where(is_below, right, np.minimum(middle, right))
        hit = (suffixes[np.minimum(left, layout.keys - 1)] & mask == wanted) & (left < end)
        found[low:high] = hit
        if values is not None:
            held = column(self._data, layout.suffix_bytes, layout.keys, layout.record_bytes, values.dtype)
            values[low:high][hit] = held[left[hit]]

    def _group_places(self, prefixes: CountArray) -> tuple[CountArray, CountArray]:
        layout = self._layout
        group, nth = np.divmod(prefixes, GROUP_PREFIXES)
        at = layout.directory + group * layout.group_bytes
        self._verify_all(at, at + layout.group_bytes)
        groups = np.ndarray(
            (groups_of(layout.prefixes),), group_type(layout.count_bytes), self._data, offset=layout.directory
        )[group]
        ends = np.cumsum(groups["counts"], axis=1, dtype=np.int64)
        end = ends[np.arange(len(nth)), nth]
        count = groups["counts"][np.arange(len(nth)), nth].astype(np.int64)
        first = groups["start"].astype(np.int64)
        return first + end - count, first + end

    def _verify_all(self, starts: CountArray, ends: CountArray) -> None:
        first, last = starts // BLOCK_BYTES, (ends - 1) // BLOCK_BYTES
        further = range(int((last - first).max()) + 1)
        blocks = np.unique(np.concatenate([first[first + more <= last] + more for more in further] or [first[:0]]))
        view = self._view
        found = [isal_zlib.crc32(view[at : at + BLOCK_BYTES]) for at in (blocks * BLOCK_BYTES).tolist()]
        wrong = np.flatnonzero(np.frombuffer(self._table, CRC_TYPE)[blocks] != np.array(found, dtype=CRC_TYPE))
        if len(wrong):
            raise self._damaged_block_error(int(blocks[wrong[0]]), found[wrong[0]])

    def _check_blocks(self, start: int, end: int) -> None:
        for block in range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            if block not in self._sound:
                crc = isal_zlib.crc32(self._view[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES])
                if crc != int.from_bytes(self._table[block * CRC_BYTES : (block + 1) * CRC_BYTES], "little"):
                    raise self._damaged_block_error(block, crc)
                self._sound.add(block)

    def _verify_blocks(self, first: int, data: memoryview) -> None:
        """Verify adjacent blocks. The one before the table of checksums may be short."""
        found = [isal_zlib.crc32(data[at : at + BLOCK_BYTES]) for at in range(0, len(data), BLOCK_BYTES)]
        stored = np.frombuffer(self._table, CRC_TYPE, len(found), first * CRC_BYTES).tolist()
        if found != stored:
            wrong = next(place for place, crc in enumerate(found) if crc != stored[place])
            raise self._damaged_block_error(first + wrong, found[wrong])

    def _damaged_block_error(self, block: int, crc: int) -> CorruptionError:
        stored = int.from_bytes(self._table[block * CRC_BYTES : (block + 1) * CRC_BYTES], "little")
        return CorruptionError(self._path, block * BLOCK_BYTES, f"block crc32 {stored:#010x}", f"{crc:#010x}")


def _common_indices(some: KeyArray, others: KeyArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indices, in two strictly ascending arrays, of the keys in both."""
    if len(some) > len(others):
        there, here = _common_indices(others, some)
        return here, there
    places = others.searchsorted(some)
    here = np.flatnonzero(others.take(places, mode="clip") == some)
    return here, places[here]
