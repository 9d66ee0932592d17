"""Keys: 64-bit hashes by which URLSeen, the front queues and the partitions identify URLs.

Each crawl makes its keys with a secret of its own (`Keys`). Without one, anybody who knows the hash could construct a
URL with the key of another URL, which then counts as seen, or a domain that shares another's budget. Secret and hash
are part of the crawl record, because keys on disk were made with them.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NewType

import mmh3
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    import numpy.typing as npt

    KeyArray = npt.NDArray[np.uint64]

UrlKey = NewType("UrlKey", int)
"""64 bits, unsigned. In 37 crawls of 10^9 URLs each, expect one pair of URLs with the same key."""

PldKey = NewType("PldKey", int)
"""64 bits, unsigned: the key of a pay-level domain."""

HASH_SEED: Final = 0x0B16C4A3
"""Seed of MurmurHash3 in crawls without a secret. Any constant would do."""

SECRET_BYTES: Final = 16

PLDS_CACHED: Final = 1 << 15  # domains whose keys are cached: some 5 MB

_KEY_BYTES: Final = 8
_MASK: Final = (1 << 64) - 1

# Python hashes text with SipHash under a random key of the process, unless PYTHONHASHSEED disables that.
_HASHES_ARE_SECRET: Final = bool(sys.flags.hash_randomization) and sys.hash_info.algorithm.startswith("siphash")


class Keys:
    """Makes the keys of one crawl.

    Cost: 0.4 us a URL; MurmurHash3 took 0.15.
    """

    def __init__(self, secret: bytes) -> None:
        """Set the crawl's secret. It is empty in crawls begun before secrets existed; their keys are public.

        The hash is 64 bits of BLAKE2b over secret and text. BLAKE2b has no length extension, so this is a keyed hash.
        It takes one call of the compression function, where BLAKE2b's own key parameter would take two.
        """
        assert len(secret) in (0, SECRET_BYTES)
        self._hash = _secret_hash(secret) if secret else _public_hash
        self.of_pld = lru_cache(PLDS_CACHED)(self._of_pld)
        """The key of a pay-level domain, or of anything else that is counted like one."""

    def __repr__(self) -> str:
        return f"<Keys {'public' if self._hash is _public_hash else 'secret'}>"  # never show the secret itself

    def of_url(self, canonical: str) -> UrlKey:
        """Return the key of a canonical URL that is fetched by GET without a body."""
        return UrlKey(int.from_bytes(self._hash(canonical.encode()), "little"))

    def of_urls(self, canonicals: Iterable[str]) -> KeyArray:
        """Return the keys of many canonical URLs as `of_url` does, in order, as an array for DRUM."""
        return np.frombuffer(b"".join(map(self._hash, map(str.encode, canonicals))), dtype="<u8")

    def of_request(self, canonical: str, method: str = "GET", body: bytes = b"", jar: bytes = b"") -> UrlKey:
        """Return the key of a request. A GET without body and cookie jar has that of its URL, others have their own.

        Methods are compared case-insensitively. Neither a method nor a canonical URL can contain a space or a line end,
        so different requests never hash the same bytes.
        """
        method = method.upper()
        if method == "GET" and not body and not jar:
            return self.of_url(canonical)
        name = f" {jar.hex()}" if jar else ""
        return UrlKey(self.of_bytes(f"{method} {canonical}{name}\n".encode() + body))

    def of_bytes(self, data: bytes) -> int:
        """Return the key of any bytes: 64 bits, unsigned."""
        return int.from_bytes(self._hash(data), "little")

    def partition_of(self, pld: str, partitions: int) -> int:
        """Return the number of the partition that a PLD belongs to: its key modulo `partitions`."""
        return self.of_pld(pld) % partitions

    def marks_of(self, canonicals: Collection[str]) -> KeyArray:
        """Return marks that identify URLs in this process, in order. They are not keys and differ in every process.

        Outsiders cannot choose them either. Cost: 0.1 us for a URL that has been in a dict.
        """
        if not _HASHES_ARE_SECRET:
            return self.of_urls(canonicals)
        return np.fromiter(map(hash, canonicals), np.int64, len(canonicals)).view(np.uint64)

    def mark_of(self, canonical: str) -> int:
        """Return the mark of one URL."""
        return hash(canonical) & _MASK if _HASHES_ARE_SECRET else self.of_url(canonical)

    def _of_pld(self, pld: str) -> PldKey:
        return PldKey(self.of_bytes(pld.encode()))


def _secret_hash(secret: bytes) -> Callable[[bytes], bytes]:
    copy = blake2b(secret, digest_size=_KEY_BYTES).copy

    def hash_of(data: bytes) -> bytes:
        state = copy()  # in half the time of a new one
        state.update(data)
        return state.digest()

    return hash_of


def _public_hash(data: bytes) -> bytes:
    return mmh3.hash_bytes(data, HASH_SEED)[:_KEY_BYTES]


PUBLIC_KEYS: Final = Keys(b"")
"""The keys of crawls without a secret."""
