"""Fingerprints of the requests that another crawler met: a Redis hash of buckets, some nine bytes for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.fetched_elsewhere import FINGERPRINTS
from bigcrawl.url.scrapy_fingerprint import SCHEMES, fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.redisdb.client import RedisClient

_BUCKET_BITS: Final = 17  # 8 of a million fingerprints in a bucket, or 6 KB of a hundred million
_SHIFT: Final = np.uint64(64 - _BUCKET_BITS)
_IN_BUCKET: Final = np.uint64((1 << 64 - _BUCKET_BITS) - 1)
_BIG_ENDIAN: Final = np.dtype(">u8")
_BUCKETS_AT_ONCE: Final = 1_000


class Fingerprints:
    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).fingerprints

    def __repr__(self) -> str:
        return f"<Fingerprints {self._key}>"

    async def have(self, prints: Sequence[int]) -> list[bool]:
        asked = np.array(prints, dtype=np.uint64)
        buckets = (asked >> _SHIFT).tolist()
        rows = await self._client.command("HMGET", self._key, *map(str, buckets))
        return [_holds(row, one) for row, one in zip(rows, asked, strict=True)]

    async def update(self, added: npt.NDArray[np.uint64], removed: npt.NDArray[np.uint64]) -> int:
        """Add fingerprints, then remove others; return how many the changed buckets now hold. May be repeated."""
        added, removed = np.unique(added), np.unique(removed)
        buckets = np.unique(np.concatenate([added, removed]) >> _SHIFT)
        count = 0
        for at in range(0, len(buckets), _BUCKETS_AT_ONCE):
            some = buckets[at : at + _BUCKETS_AT_ONCE]
            names = [str(bucket) for bucket in some.tolist()]
            rows = await self._client.command("HMGET", self._key, *names)
            fields: list[str | bytes] = []
            for name, row, more, fewer in zip(names, rows, _split(added, some), _split(removed, some), strict=True):
                prints = np.setdiff1d(np.union1d(_prints_of(row), more), fewer, assume_unique=True)
                count += len(prints)
                fields += [name, prints.astype(_BIG_ENDIAN).tobytes()]
            await self._client.command("HSET", self._key, *fields)
        return count


async def forget_urls(client: RedisClient, crawl: str, urls: Sequence[str]) -> None:
    scheme = await client.command("HGET", CrawlKeys(crawl).control, FINGERPRINTS)
    if scheme is not None and scheme.decode("ascii", "replace") in SCHEMES:
        prints = np.array([fingerprint_of(scheme.decode(), url) for url in urls], dtype=np.uint64)
        await Fingerprints(client, crawl).update(np.empty(0, np.uint64), prints)


def _prints_of(row: bytes | None) -> npt.NDArray[np.uint64]:
    return np.frombuffer(row or b"", dtype=_BIG_ENDIAN).astype(np.uint64)


def _holds(row: bytes | None, one: np.uint64) -> bool:
    prints = _prints_of(row)
    at = int(np.searchsorted(prints, one))
    return at < len(prints) and bool(prints[at] == one)


def _split(prints: npt.NDArray[np.uint64], buckets: npt.NDArray[np.uint64]) -> list[npt.NDArray[np.uint64]]:
    firsts = np.searchsorted(prints, buckets << _SHIFT)
    lasts = np.searchsorted(prints, (buckets << _SHIFT) | _IN_BUCKET, side="right")
    return [prints[first:behind] for first, behind in zip(firsts, lasts, strict=True)]
