"""Which pages are copies of which, in a map of DRUM: the verdicts on what was looked up.

The map has a record for each page and content that is a copy. Its key is made of both, because a page that is visited
again may have another content. Its value names the original. The first verdict stays, but an exact copy takes the place
of a near one. So merging the same rows again changes nothing, and counts nothing again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.content.exact_copies import NO_PAGE, find_and_add
from bigcrawl.content.shingles import mixed
from bigcrawl.drum.bucket import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from bigcrawl.drum.bucket import ApplyResult, Bucket
    from bigcrawl.drum.format import KeyArray

    Commit = Callable[[Bucket, ApplyResult], None]

EXACT: Final = 1
NEAR: Final = 2

COPY: Final = np.dtype([("page", "<u8"), ("content", "<u8"), ("original", "<u8"), ("kind", "<u4")])
"""The page, its content, the page that it is a copy of, and `EXACT` or `NEAR`."""

COPIES: Final = Kind("copy", COPY, fresh_max=1024)
"""The kind of the map."""


class CopyCounts(NamedTuple):
    """How many copies there are more than before. An exact copy that was a near one counts as one near copy less."""

    exact: int = 0
    near: int = 0

    def __add__(self, other: object) -> CopyCounts:
        if not isinstance(other, CopyCounts):
            return NotImplemented
        return CopyCounts(self.exact + other.exact, self.near + other.near)


NO_COPIES: Final = CopyCounts()


def find_exact(contents: Bucket, copies: Bucket, keys: KeyArray, pages: KeyArray, commit: Commit) -> CopyCounts:
    """Look pages up by their contents, add the contents that are new, and note the pages that are copies.

    Args:
        contents: a map of kind `exact_copies.CONTENTS`.
        copies: a map of kind `COPIES`.
        keys: uint64, shape (n,): of the contents, in the order of arrival, duplicates allowed.
        pages: uint64, shape (n,): of the page that has each.
        commit: adopts a result in one of the maps.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed or is full.
    """
    originals = find_and_add(contents, keys, pages, lambda result: commit(contents, result))
    there = originals != NO_PAGE
    if not there.any():
        return NO_COPIES
    return note_copies(copies, pages[there], keys[there], originals[there], EXACT, commit)


def note_near(contents: Bucket, copies: Bucket, rows: npt.NDArray[Any], commit: Commit) -> CopyCounts:
    """Note the contents that are nearly those of other pages, each at the page that had it first.

    Args:
        contents: a map of kind `exact_copies.CONTENTS`.
        copies: a map of kind `COPIES`.
        rows: with the fields `content`, `page` (one that has it) and `original`, shape (n,), duplicates allowed.
        commit: adopts a result in one of the maps.

    Raises:
        CorruptionError, OSError: as `find_exact`.
    """
    found, first = contents.values(rows["content"])
    pages = np.where(found, first, rows["page"])
    is_other = pages != rows["original"]
    if not is_other.any():
        return NO_COPIES
    rows = rows[is_other]
    return note_copies(copies, pages[is_other], rows["content"], rows["original"], NEAR, commit)


def note_copies(
    copies: Bucket, pages: KeyArray, contents: KeyArray, originals: KeyArray, kind: int, commit: Commit
) -> CopyCounts:
    """Note verdicts on pages, the first of each page and content.

    Args:
        copies: a map of kind `COPIES`.
        pages: uint64, shape (n,), in the order of arrival, duplicates allowed.
        contents: uint64, shape (n,): what each page contains.
        originals: uint64, shape (n,): what each page is a copy of.
        kind: `EXACT` or `NEAR`.
        commit: adopts a result in the map.

    Raises:
        CorruptionError, OSError: as `find_exact`.
    """
    keys, first = np.unique(copy_keys(pages, contents), return_index=True)
    found, before = copies.values(keys)
    is_near = found & (before["kind"] == NEAR)
    changed = ~found | (is_near if kind == EXACT else False)
    if not changed.any():
        return NO_COPIES
    rows = first[changed]
    values = np.empty(len(rows), dtype=COPY)
    values["page"], values["content"] = pages[rows], contents[rows]
    values["original"], values["kind"] = originals[rows], kind
    commit(copies, copies.put(keys[changed], values))
    if kind == NEAR:
        return CopyCounts(near=len(rows))
    return CopyCounts(len(rows), -int(is_near.sum()))


def note_all(copies: Bucket, rows: npt.NDArray[Any], commit: Commit) -> CopyCounts:
    """Note copies that another map has, of the dtype `COPY`. Arguments and errors are those of `note_copies`."""
    counts = NO_COPIES
    for kind in (EXACT, NEAR):
        of_kind = rows[rows["kind"] == kind]
        if len(of_kind):
            counts += note_copies(copies, of_kind["page"], of_kind["content"], of_kind["original"], kind, commit)
    return counts


def read_copies(copies: Bucket) -> npt.NDArray[Any]:
    """Return all copies in a map, of the dtype `COPY`, in no order that means anything. Reads all runs.

    Raises:
        CorruptionError, OSError: as `find_exact`.
    """
    found = [values for _, values in copies.records() if values is not None]
    return np.concatenate(found) if found else np.zeros(0, dtype=COPY)


def copy_keys(pages: KeyArray, contents: KeyArray) -> KeyArray:
    """Return the keys of pages with contents in the map."""
    return mixed(pages ^ mixed(contents))
