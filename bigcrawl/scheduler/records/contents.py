"""What pages contain, as nodes and owners tell partitions (steps 14 and 3), in a field of inbox entries of its own.

The partition of a content is chosen by the content's key, not by the page's PLD. On the wire:

    u8 format version | for each kind of rows: u32 rows, rows

    seen       a page has this content               u64 content | u64 page
    sketched   for each band of its sketch           u64 band | u64 content | u64 page | 64 bytes sketch
    found      it is nearly that of another page     u64 content | u64 page | u64 original page

Rows `seen` and `found` go to the partition of the content, rows `sketched` to that of the band, whose owner sends
`found`. All numbers are little-endian; a page is the key of its URL, a content that of its bytes (`content_key`). Rows
may come twice, and in the entry of another batch than their page's links. Merging them again changes nothing. An
unknown version is refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.content import near_copies
from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    Rows = npt.NDArray[Any]

SEEN: Final = np.dtype([("content", "<u8"), ("page", "<u8")])
SKETCHED: Final = near_copies.ROW
FOUND: Final = np.dtype([("content", "<u8"), ("page", "<u8"), ("original", "<u8")])
KINDS: Final = (SEEN, SKETCHED, FOUND)
"""The kinds of rows, in their order."""

_VERSION: Final = 1
_COUNT: Final = struct.Struct("<I")
_SKETCHED_ROW: Final = struct.Struct("<QQQ64s")
_SEEN_ROW: Final = struct.Struct("<QQ")
SEEN_BYTES: Final = SEEN.itemsize
_EMPTY: Final = 1 + len(KINDS) * _COUNT.size


class ContentsFormatError(BigcrawlError):
    """The bytes are not rows that this version can read."""


class ContentRow(NamedTuple):
    """A packed row for a partition; one of `seen` and `sketched` is empty."""

    partition: int
    seen: bytes
    sketched: bytes = b""


class ContentRows(NamedTuple):
    """The rows of one entry, of the dtypes above."""

    seen: Rows
    sketched: Rows
    found: Rows


def pack_seen(content: int, page: int) -> bytes:
    """Return the row of a page with a content. Cost: 0.2 us."""
    return _SEEN_ROW.pack(content, page)


def pack_sketched(band: int, content: int, page: int, sketch: bytes) -> bytes:
    """Return the row of a band of a content, with its packed sketch. Cost: 0.3 us."""
    return _SKETCHED_ROW.pack(band, content, page, sketch)


def pack_found(contents: KeyArray, pages: KeyArray, originals: KeyArray) -> bytes:
    """Return the rows of contents that are nearly those of other pages, each once."""
    rows = np.empty(len(contents), dtype=FOUND)
    rows["content"], rows["page"], rows["original"] = contents, pages, originals
    _, first = np.unique(contents, return_index=True)
    return rows[np.sort(first)].tobytes()


def pack_contents(seen: bytes = b"", sketched: bytes = b"", found: bytes = b"") -> bytes:
    """Return rows, each packed, as the field of an inbox entry; empty if there are none."""
    parts = [bytes((_VERSION,))]
    for kind, rows in zip(KINDS, (seen, sketched, found), strict=True):
        parts += (_COUNT.pack(len(rows) // kind.itemsize), rows)
    packed = b"".join(parts)
    return packed if len(packed) > _EMPTY else b""


def found_by_partition(found: bytes, partitions: int) -> dict[int, bytes]:
    """Divide packed rows `found` among the partitions of their contents."""
    rows = np.frombuffer(found, dtype=FOUND)
    homes = rows["content"] % np.uint64(partitions)
    return {int(home): rows[homes == home].tobytes() for home in np.unique(homes)}


def rows_in(packed: bytes) -> int:
    """Return about how many URLs packed rows count for while they wait, by their bytes."""
    return len(packed) // SEEN_BYTES


def unpack_contents(data: bytes) -> ContentRows:
    """Return the rows that `pack_contents` packed.

    Raises:
        ContentsFormatError: unknown version, or rows are missing or left over.
    """
    if not data or data[0] != _VERSION:
        found = data[0] if data else "nothing"
        raise ContentsFormatError(f"contents have format version {found}; this version reads {_VERSION}")
    at, kinds = 1, []
    for kind in KINDS:
        if len(data) < at + _COUNT.size:
            raise ContentsFormatError(f"contents of {len(data)} bytes end before a number of rows")
        (count,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        end = at + count * kind.itemsize
        if end > len(data):
            raise ContentsFormatError(f"contents of {len(data)} bytes lack some of {count} rows")
        kinds.append(np.frombuffer(data, dtype=kind, count=count, offset=at))
        at = end
    if at != len(data):
        raise ContentsFormatError(f"contents of {len(data)} bytes have {len(data) - at} bytes after their rows")
    return ContentRows(*kinds)
