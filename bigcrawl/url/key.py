"""Keys: 64-bit hashes that identify URLs in URLSeen, the front queues and the partitions.

They are made with a secret of the crawl. Otherwise anybody could construct a URL with the key of another one, which
would then count as seen.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NewType

import mmh3
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    KeyArray = npt.NDArray[np.uint64]

UrlKey = NewType("UrlKey", int)
"""In 37 crawls of 10^9 URLs, about one pair of URLs shares a key."""

PldKey = NewType("PldKey", int)

HASH_SEED: Final = 0x0B16C4A3

SECRET_BYTES: Final = 16

PLDS_CACHED: Final = 1 << 15

_KEY_BYTES: Final = 8
_MASK: Final = (1 << 64) - 1

# Python hashes text with SipHash and a random key, unless PYTHONHASHSEED disables that.
_HASHES_ARE_SECRET: Final = bool(sys.flags.hash_randomization) and sys.hash_info.algorithm.startswith("siphash")


class Keys:
    def __init__(self, secret: bytes) -> None:
        """Set the crawl's secret, empty in old crawls. BLAKE2b needs no HMAC: it has no length extension."""
        assert len(secret) in (0, SECRET_BYTES)
        self._hash = _secret_hash(secret) if secret else _public_hash
        self.of_pld = lru_cache(PLDS_CACHED)(self._of_pld)

    def __repr__(self) -> str:
        return f"<Keys {'public' if self._hash is _public_hash else 'secret'}>"  # never the secret

    def of_url(self, canonical: str) -> UrlKey:
        # `UrlKey(...)` would add a tenth to the cost.
        return int.from_bytes(self._hash(canonical.encode()), "little")  # type: ignore[return-value]

    def of_urls(self, canonicals: Iterable[str]) -> KeyArray:
        return np.frombuffer(b"".join(map(self._hash, map(str.encode, canonicals))), dtype="<u8")

    def of_request(self, canonical: str, method: str = "GET", body: bytes = b"", jar: bytes = b"") -> UrlKey:
        """Return the key of a request; a GET without body and cookie jar has that of its URL."""
        method = method.upper()
        if method == "GET" and not body and not jar:
            return self.of_url(canonical)
        name = f" {jar.hex()}" if jar else ""
        return UrlKey(self.of_bytes(f"{method} {canonical}{name}\n".encode() + body))

    def of_bytes(self, data: bytes) -> int:
        return int.from_bytes(self._hash(data), "little")

    def partition_of(self, pld: str, partitions: int) -> int:
        return self.of_pld(pld) % partitions

    def marks_of(self, canonicals: Iterable[str]) -> KeyArray:
        """Return hashes that identify URLs in this process only: faster than keys, and as unpredictable."""
        return np.array(self.signed_marks_of(canonicals), np.int64).view(np.uint64)

    def signed_marks_of(self, canonicals: Iterable[str]) -> list[int]:
        if _HASHES_ARE_SECRET:
            return list(map(hash, canonicals))
        signed: list[int] = self.of_urls(canonicals).view(np.int64).tolist()
        return signed

    def mark_of(self, canonical: str) -> int:
        return hash(canonical) & _MASK if _HASHES_ARE_SECRET else self.of_url(canonical)

    def _of_pld(self, pld: str) -> PldKey:
        return PldKey(self.of_bytes(pld.encode()))


def _secret_hash(secret: bytes) -> Callable[[bytes], bytes]:
    copy = blake2b(secret, digest_size=_KEY_BYTES).copy

    def hash_of(data: bytes) -> bytes:
        state = copy()  # twice as fast as a new one
        state.update(data)
        return state.digest()

    return hash_of


def _public_hash(data: bytes) -> bytes:
    return mmh3.hash_bytes(data, HASH_SEED)[:_KEY_BYTES]


PUBLIC_KEYS: Final = Keys(b"")
