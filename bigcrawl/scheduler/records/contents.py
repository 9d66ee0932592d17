"""What pages contain, in the form in which nodes and owners tell partitions: a field of inbox entries (steps 14, 3).

The partition of a content is chosen by the content's key, not by the page's PLD. On the wire:

    u8 format version | for each kind of which there are rows: u8 kind, u32 rows, rows

    0 seen       a page has this content               u64 content | u64 page
    1 sketched   for each band of its sketch           u64 band | u64 content | u64 page | 64 bytes sketch
    2 found      it is nearly that of another page     u64 content | u64 page | u64 original page
    3 sampled    a page of this PLD has this content   u64 PLD | u64 content
    4 counted    a PLD has it as its n-th sample       u64 content | u64 PLD | u32 n | u8 octave of its in-degree
    5 shared     a greater PLD has the n-th sample     u64 PLD | u32 n | u64 other PLD | u8 octave of its in-degree

Rows `seen`, `found` and `counted` go to the partition of the content, rows `sketched` to that of the band, whose owner
sends `found`. Rows `sampled` and `shared` go to the partition of the PLD, see `bigcrawl.scheduler.budgets.mirrors`. All
numbers are little-endian; a page is the key of its URL, a content that of its bytes (`content_key`). Rows may come
twice, and in the entry of another batch than their page's links. Merging them again changes nothing, except that a
content may count as a sample of its PLD again. An unknown version is refused.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.content import near_copies
from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    Rows = npt.NDArray[Any]

SEEN: Final = np.dtype([("content", "<u8"), ("page", "<u8")])
SKETCHED: Final = near_copies.ROW
FOUND: Final = np.dtype([("content", "<u8"), ("page", "<u8"), ("original", "<u8")])
FOUND_BYTES: Final = FOUND.itemsize
SAMPLED: Final = np.dtype([("pld", "<u8"), ("content", "<u8")])
COUNTED: Final = np.dtype([("content", "<u8"), ("pld", "<u8"), ("number", "<u4"), ("octave", "u1")])
SHARED: Final = np.dtype([("pld", "<u8"), ("number", "<u4"), ("other", "<u8"), ("octave", "u1")])
KINDS: Final = (SEEN, SKETCHED, FOUND, SAMPLED, COUNTED, SHARED)
"""The kinds of rows, by their numbers."""

_VERSION: Final = 1
_KIND: Final = struct.Struct("<BI")
_PAIR: Final = struct.Struct("<QQ")
SEEN_BYTES: Final = SEEN.itemsize
SKETCHED_BYTES: Final = SKETCHED.itemsize


class RowKind(IntEnum):
    """The number of each kind of rows."""

    SEEN = 0
    SKETCHED = 1
    FOUND = 2
    SAMPLED = 3
    COUNTED = 4
    SHARED = 5


class ContentsFormatError(BigcrawlError):
    """The bytes are not rows that this version can read."""


class ContentRow(NamedTuple):
    """Packed rows of one kind for a partition."""

    partition: int
    rows: bytes | bytearray
    kind: RowKind = RowKind.SEEN


class ContentRows(NamedTuple):
    """The rows of one entry, of the dtypes above."""

    seen: Rows
    sketched: Rows
    found: Rows
    sampled: Rows
    counted: Rows
    shared: Rows


def pack_seen(content: int, page: int) -> bytes:
    """Return the row of a page with a content. Cost: 0.2 us."""
    return _PAIR.pack(content, page)


def pack_sketched(bands: KeyArray, contents: KeyArray, pages: KeyArray, sketches: Rows) -> bytes:
    """Return the rows of contents, one for each band of each, in the order of contents and bands.

    Args:
        bands: uint64, shape (n, bands).
        contents: uint64, shape (n,).
        pages: uint64, shape (n,): one that has each.
        sketches: packed ones, uint64, shape (n, words).
    """
    rows = np.empty(bands.shape, dtype=SKETCHED)
    rows["band"] = bands
    rows["content"], rows["page"] = contents[:, np.newaxis], pages[:, np.newaxis]
    rows["sketch"] = sketches[:, np.newaxis]
    return rows.tobytes()


def pack_sampled(pld: int, content: int) -> bytes:
    """Return the row of a PLD that has a page with a content. Cost: 0.2 us."""
    return _PAIR.pack(pld, content)


def pack_found(contents: KeyArray, pages: KeyArray, originals: KeyArray) -> bytes:
    """Return the rows of contents that are nearly those of other pages, each once."""
    rows = np.empty(len(contents), dtype=FOUND)
    rows["content"], rows["page"], rows["original"] = contents, pages, originals
    _, first = np.unique(contents, return_index=True)
    return rows[np.sort(first)].tobytes()


def pack_contents(*rows: bytes | bytearray, found: bytes = b"") -> bytes:
    """Return rows, each packed, as the field of an inbox entry; empty if there are none.

    Args:
        rows: of each kind, in the order of their numbers; those that are left out are empty.
        found: rows of that kind, if they are not among the others.
    """
    by_number: dict[int, bytes | bytearray] = dict(enumerate(rows))
    if found:
        by_number[RowKind.FOUND] = found
    parts: list[bytes | bytearray] = [bytes((_VERSION,))]
    for number, packed in sorted(by_number.items()):
        if packed:
            parts += (_KIND.pack(number, len(packed) // KINDS[number].itemsize), packed)
    return b"".join(parts) if len(parts) > 1 else b""


def found_by_partition(found: bytes, partitions: int) -> dict[int, bytes]:
    """Divide packed rows `found` among the partitions of their contents."""
    rows = np.frombuffer(found, dtype=FOUND)
    homes = rows["content"] % np.uint64(partitions)
    return {int(home): rows[homes == home].tobytes() for home in np.unique(homes)}


def found_in(found: bytes, homes: Collection[int], partitions: int) -> bytes:
    """Return those of packed rows `found` whose contents lie in certain partitions."""
    rows = np.frombuffer(found, dtype=FOUND)
    return rows[np.isin(rows["content"] % np.uint64(partitions), list(homes))].tobytes()


def rows_by_partition(kind: RowKind, rows: Iterable[tuple[int, ...]], partitions: int) -> list[ContentRow]:
    """Pack rows `counted` for the partitions of their contents, or rows `shared` for those of their PLDs.

    Args:
        kind: `RowKind.COUNTED` or `RowKind.SHARED`.
        rows: with the fields of that kind; the first one names the partition.
        partitions: how many there are.
    """
    pack = _TOLD_ROWS[kind].pack
    packed: dict[int, bytearray] = {}
    for row in rows:
        packed.setdefault(row[0] % partitions, bytearray()).extend(pack(*row))
    return [ContentRow(home, some, kind) for home, some in packed.items()]


def rows_in(packed: bytes) -> int:
    """Return about how many URLs packed rows count for while they wait, by their bytes."""
    return len(packed) // SEEN_BYTES


def unpack_contents(data: bytes) -> ContentRows:
    """Return the rows that `pack_contents` packed.

    Raises:
        ContentsFormatError: unknown version or kind, kinds in another order, or rows are missing or left over.
    """
    if not data or data[0] != _VERSION:
        found = data[0] if data else "nothing"
        raise ContentsFormatError(f"contents have format version {found}; this version reads {_VERSION}")
    at, last, kinds = 1, -1, list(_NOTHING)
    while at < len(data):
        if len(data) < at + _KIND.size:
            raise ContentsFormatError(f"contents of {len(data)} bytes end within the number of some rows")
        number, count = _KIND.unpack_from(data, at)
        if not last < number < len(KINDS):
            raise ContentsFormatError(f"contents have rows of kind {number} after those of kind {last}")
        at, last = at + _KIND.size, number
        end = at + count * KINDS[number].itemsize
        if end > len(data):
            raise ContentsFormatError(f"contents of {len(data)} bytes lack some of {count} rows")
        kinds[number] = np.frombuffer(data, dtype=KINDS[number], count=count, offset=at)
        at = end
    return ContentRows(*kinds)


_TOLD_ROWS: Final = {RowKind.COUNTED: struct.Struct("<QQIB"), RowKind.SHARED: struct.Struct("<QIQB")}
_NOTHING: Final = tuple(np.empty(0, dtype=kind) for kind in KINDS)
