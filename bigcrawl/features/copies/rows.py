"""The rows by which partitions find copies of pages (docs/redis-keys.md).

    0 seen       a page has this content               to the content's partition
    1 sketched   for each band of its sketch           to the band's
    2 found      it is nearly that of another page     from there to the content's

A page is the key of its URL, a content that of its bytes (`content_key`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.content.sketched import ROW

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

SEEN: Final = 0
SKETCHED: Final = 1
FOUND: Final = 2
OWED: Final = FOUND

KINDS: Final = {
    SEEN: np.dtype([("content", "<u8"), ("page", "<u8")]),
    SKETCHED: ROW,
    FOUND: np.dtype([("content", "<u8"), ("page", "<u8"), ("original", "<u8")]),
}
SKETCHED_BYTES: Final = KINDS[SKETCHED].itemsize

_PAIR: Final = struct.Struct("<QQ")


def pack_seen(content: int, page: int) -> bytes:
    return _PAIR.pack(content, page)


def pack_sketched(bands: KeyArray, contents: KeyArray, pages: KeyArray, sketches: npt.NDArray[Any]) -> bytes:
    """Return the rows of sketched contents, one for each band of each content; `bands` has the shape (n, bands)."""
    rows = np.empty(bands.shape, dtype=KINDS[SKETCHED])
    rows["band"] = bands
    rows["content"], rows["page"] = contents[:, np.newaxis], pages[:, np.newaxis]
    rows["sketch"] = sketches[:, np.newaxis]
    return rows.tobytes()


def pack_found(contents: KeyArray, pages: KeyArray, originals: KeyArray) -> bytes:
    """Return the rows for contents that nearly equal another page's content, each content once."""
    rows = np.empty(len(contents), dtype=KINDS[FOUND])
    rows["content"], rows["page"], rows["original"] = contents, pages, originals
    _, first = np.unique(contents, return_index=True)
    return rows[np.sort(first)].tobytes()
