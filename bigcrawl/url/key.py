"""Keys: what URLSeen, the front queues and the partitions know of a URL.

The seed and the functions are part of every crawl's record: keys on disk were made with them.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NewType

import mmh3
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

UrlKey = NewType("UrlKey", int)
"""64 bits, unsigned. Of 37 crawls of 10^9 URLs each, one is to be expected in which two URLs share a key."""

PldKey = NewType("PldKey", int)
"""64 bits, unsigned: of a pay-level domain."""

HASH_SEED = 0x0B16C4A3
"""Any constant will do; it stands in the crawl record so that nodes can compare it."""


def url_key(canonical: str) -> UrlKey:
    """Return the key of a canonical URL that is fetched by GET without a body; 0.2 µs."""
    return UrlKey(mmh3.hash64(canonical, HASH_SEED, signed=False)[0])


def url_keys(canonicals: Iterable[str]) -> list[UrlKey]:
    """Return the keys of many canonical URLs, in order, as `url_key` does; 0.25 µs each."""
    hash64 = mmh3.hash64
    return [UrlKey(hash64(canonical, HASH_SEED, signed=False)[0]) for canonical in canonicals]


def url_key_array(canonicals: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return the keys of many canonical URLs as `url_keys` does, in an array, for DRUM; 0.13 µs each.

    A hash becomes bytes, not Python's integers, and the bytes of all one array.
    """
    hashes = b"".join(map(mmh3.hash_bytes, canonicals, repeat(HASH_SEED)))
    return np.frombuffer(hashes, dtype="<u8")[::2]


def request_key(canonical: str, method: str = "GET", body: bytes = b"") -> UrlKey:
    """Return the key of a request: that of its URL for a GET without a body, else one of its own.

    The method is compared without case. A space cannot occur in a method or a canonical URL, nor a
    line end, so that no two different requests are hashed as the same bytes.
    """
    method = method.upper()
    if method == "GET" and not body:
        return url_key(canonical)
    request = f"{method} {canonical}\n".encode() + body
    return UrlKey(mmh3.hash64(request, HASH_SEED, signed=False)[0])


def pld_key(pld: str) -> PldKey:
    """Return the key of a pay-level domain."""
    return PldKey(mmh3.hash64(pld, HASH_SEED, signed=False)[0])


def partition_of(pld: str, partitions: int) -> int:
    """Return the number of the partition that a PLD belongs to: its key modulo `partitions`."""
    return pld_key(pld) % partitions
