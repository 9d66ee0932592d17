"""Finds the page that a new page is a near copy of, in a map of DRUM that is asked in batches.

The map has a record for each band of each original: its key is the band, its value the page and its sketch. A page that
shares a band with an original, and whose sketch is similar enough, is a near copy of it, and gets no record of its own.
Another page with the same band takes one of `SLOTS` keys that are made of it, the first free one.

The rows of a page may lie in different maps, by their bands. Each map finds a near copy by its own rows.
Source: Manku, Jain, Das Sarma, Detecting Near-Duplicates for Web Crawling (2007), whose tables by parts of a
fingerprint these are. Differs: min-wise hashes instead of simhash, and one look-up a band instead of a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.content.shingles import mixed
from bigcrawl.content.sketches import ALIKE_MIN, BANDS, SKETCH_WORDS, places_alike
from bigcrawl.drum.bucket import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.content.sketches import Sketch
    from bigcrawl.drum.bucket import ApplyResult, Bucket
    from bigcrawl.drum.format import KeyArray

SLOTS: Final = 3
"""How many pages may have a record for one band."""

VALUE: Final = np.dtype([("page", "<u8"), ("sketch", "<u8", (SKETCH_WORDS,))])
NEAR: Final = Kind("near", VALUE, fresh_max=1024)
"""The kind of the map."""

NO_PAGE: Final = 0


class Rows(NamedTuple):
    """What a batch asks, a row for each band of each page.

    Attributes:
        bands: uint64, shape (n,), any order.
        pages: uint64, shape (n,): keys of the pages; never `NO_PAGE`.
        sketches: packed, shape (n, SKETCH_WORDS).
    """

    bands: KeyArray
    pages: KeyArray
    sketches: npt.NDArray[np.uint64]


def rows_of(pages: Sequence[tuple[int, Sketch]]) -> Rows:
    """Return the rows of pages, which are given with their keys; all rows of a page are neighbours."""
    keys = np.array([key for key, _ in pages], dtype=np.uint64)
    bands = np.array([sketch.bands for _, sketch in pages], dtype=np.uint64).reshape(-1)
    packed = np.array([sketch.packed for _, sketch in pages], dtype=np.uint64).reshape(-1, SKETCH_WORDS)
    return Rows(bands, keys.repeat(BANDS), packed.repeat(BANDS, axis=0))


def find_and_add(table: Bucket, rows: Rows, commit: Callable[[ApplyResult], None]) -> KeyArray:
    """Find for each row the page of which it is a near copy, and add the rows that have none.

    Args:
        table: of kind `NEAR`.
        rows: in the order of arrival. Of two new near copies in one batch, the first is the original.
        commit: adopts a result in the table; it is called once for each slot that was used.

    Returns:
        The key of the original, shape (n,); `NO_PAGE` for a row without one. A page that was added before is not its
        own copy.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed or is full.

    Cost: that of `Bucket.values` for each slot in use.
    """
    originals = np.zeros(len(rows.bands), dtype=np.uint64)
    left = np.arange(len(rows.bands))
    for slot in range(SLOTS):
        if not len(left):
            break
        keys = rows.bands[left] if slot == 0 else mixed(rows.bands[left] + np.uint64(slot))
        distinct, first, whose = np.unique(keys, return_index=True, return_inverse=True)
        found, held = table.values(distinct)
        added = ~found
        held["page"][added] = rows.pages[left[first[added]]]
        held["sketch"][added] = rows.sketches[left[first[added]]]
        if added.any():
            commit(table.put(distinct[added], held[added]))
        there = held[whose]
        is_own = there["page"] == rows.pages[left]
        is_near = places_alike(there["sketch"], rows.sketches[left]) >= ALIKE_MIN
        originals[left[is_near & ~is_own]] = there["page"][is_near & ~is_own]
        left = left[~(is_near | is_own)]
    return originals
