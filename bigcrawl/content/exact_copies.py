"""Finds the first page with the same bytes, in a map of DRUM (Mercator's content-seen test).

A key is the first 64 bits of the payload's SHA-1. An attacker finds a collision in an hour, so no body is dropped for
its key alone: `warc.origins` and `page_index.copies` compare more.
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

NO_PAGE: Final = 0

_KEY_BYTES: Final = 8

# Never change them: stored keys and sketches depend on them.
MIXER: Final = np.uint64(0xD6E8FEB86659FD93)
HALF_BITS: Final = np.uint64(32)


def content_key(payload_sha1: bytes) -> int:
    return int.from_bytes(payload_sha1[:_KEY_BYTES], "little")


def find_and_add(table: Bucket, keys: KeyArray, pages: KeyArray, commit: Callable[[ApplyResult], None]) -> KeyArray:
    """Return for each page the first one with its content, or `NO_PAGE`; pages are in order of arrival."""
    if are_ascending(keys):
        of_each = _originals_of(table, keys, pages, commit)
    else:
        distinct, first, whose = np.unique(keys, return_index=True, return_inverse=True)
        of_each = _originals_of(table, distinct, pages[first], commit)[whose]
    of_each[of_each == pages] = NO_PAGE
    return of_each


def _originals_of(
    table: Bucket, contents: KeyArray, pages: KeyArray, commit: Callable[[ApplyResult], None]
) -> KeyArray:
    found, originals = table.values(contents)
    is_new = ~found
    if is_new.any():
        originals[is_new] = pages[is_new]
        commit(table.put(contents[is_new], originals[is_new]))
    return originals


def mix_bits(keys: KeyArray) -> KeyArray:
    spread: KeyArray = keys ^ (keys >> HALF_BITS)
    spread *= MIXER
    spread ^= spread >> HALF_BITS
    spread *= MIXER
    spread ^= spread >> HALF_BITS
    return spread
