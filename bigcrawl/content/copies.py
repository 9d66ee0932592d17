"""Records which pages are copies, in a map of DRUM.

A key combines page and content, because a revisited page may have a new content. The first verdict stays, except that
an exact copy replaces a near one, so repeated rows change nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.content.exact_copies import NO_PAGE, find_and_add, mix_bits
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

COPIES: Final = Kind("copy", COPY, fresh_max=1024)


class CopyCounts(NamedTuple):
    """Numbers of added copies; a near copy that becomes exact counts as -1 near."""

    exact: int = 0
    near: int = 0

    def __add__(self, other: object) -> CopyCounts:
        if not isinstance(other, CopyCounts):
            return NotImplemented
        return CopyCounts(self.exact + other.exact, self.near + other.near)


NO_COPIES: Final = CopyCounts()


def find_exact(contents: Bucket, copies: Bucket, keys: KeyArray, pages: KeyArray, commit: Commit) -> CopyCounts:
    """Find earlier pages with these contents, add new contents, and record copies; pages are in order of arrival."""
    originals = find_and_add(contents, keys, pages, lambda result: commit(contents, result))
    there = originals != NO_PAGE
    if not there.any():
        return NO_COPIES
    return record_copies(copies, pages[there], keys[there], originals[there], EXACT, commit)


def record_near(contents: Bucket, copies: Bucket, rows: npt.NDArray[Any], commit: Commit) -> CopyCounts:
    found, first = contents.values(rows["content"])
    pages = np.where(found, first, rows["page"])
    is_other = pages != rows["original"]
    if not is_other.any():
        return NO_COPIES
    rows = rows[is_other]
    return record_copies(copies, pages[is_other], rows["content"], rows["original"], NEAR, commit)


def record_copies(
    copies: Bucket, pages: KeyArray, contents: KeyArray, originals: KeyArray, kind: int, commit: Commit
) -> CopyCounts:
    """Record the first verdict of each page and content; pages are in order of arrival."""
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


def record_all(copies: Bucket, rows: npt.NDArray[Any], commit: Commit) -> CopyCounts:
    counts = NO_COPIES
    for kind in (EXACT, NEAR):
        of_kind = rows[rows["kind"] == kind]
        if len(of_kind):
            counts += record_copies(copies, of_kind["page"], of_kind["content"], of_kind["original"], kind, commit)
    return counts


def read_copies(copies: Bucket) -> npt.NDArray[Any]:
    found = [values for _, values in copies.records() if values is not None]
    return np.concatenate(found) if found else np.zeros(0, dtype=COPY)


def copy_keys(pages: KeyArray, contents: KeyArray) -> KeyArray:
    return mix_bits(pages ^ mix_bits(contents))
