"""Finds the page that had the same bytes before, in a map of DRUM that is asked in batches.

The map has a record for each content: its key is the first 64 bits of the payload's SHA-1, its value the page that had
it first. Two of 10^8 contents are taken for one with a probability of 3 in 10,000, and an enemy
makes two in an hour, so a key alone drops no body: `warc.origins` and `page_index.copies` compare more.
Source: Mercator (content-seen test), which keeps 64-bit checksums of pages too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.drum.bucket import Kind
from bigcrawl.drum.format import are_ascending

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.drum.bucket import ApplyResult, Bucket
    from bigcrawl.drum.format import KeyArray

CONTENTS: Final = Kind("content", np.dtype("<u8"), fresh_max=1024)
"""The kind of the map."""

NO_PAGE: Final = 0

_KEY_BYTES: Final = 8


def content_key(payload_sha1: bytes) -> int:
    """Return the key of a content, by the SHA-1 of its payload."""
    return int.from_bytes(payload_sha1[:_KEY_BYTES], "little")


def find_and_add(table: Bucket, keys: KeyArray, pages: KeyArray, commit: Callable[[ApplyResult], None]) -> KeyArray:
    """Find for each page the one that had its content first, and add the contents that are new.

    Args:
        table: of kind `CONTENTS`.
        keys: uint64, shape (n,): of the contents, in the order of arrival, duplicates allowed.
        pages: uint64, shape (n,): of the page that has each; never `NO_PAGE`.
        commit: adopts a result in the table.

    Returns:
        The original, shape (n,); `NO_PAGE` for the first page with a content, whenever it comes again.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed or is full.

    Cost: one look-up in the map for each distinct content.
    """
    if are_ascending(keys):  # one or two come at a time, and sorting them would take most of the time
        of_each = _originals_of(table, keys, pages, commit)
    else:
        distinct, first, whose = np.unique(keys, return_index=True, return_inverse=True)
        of_each = _originals_of(table, distinct, pages[first], commit)[whose]
    of_each[of_each == pages] = NO_PAGE
    return of_each


def _originals_of(
    table: Bucket, contents: KeyArray, pages: KeyArray, commit: Callable[[ApplyResult], None]
) -> KeyArray:
    """Return the page that has each of the ascending contents first; a new content is added, and its page is that."""
    found, originals = table.values(contents)
    is_new = ~found
    if is_new.any():
        originals[is_new] = pages[is_new]
        commit(table.put(contents[is_new], originals[is_new]))
    return originals
