"""The fingerprints of pages that another crawler has fetched: its known ones without those of its queue."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.fingerprints import FINGERPRINTS, Fingerprints
from bigcrawl.url.scrapy_fingerprint import SCHEMES, fingerprint_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.views.opened_crawl import OpenedCrawl

PRINTS_MAX: Final = 100_000_000  # 800 MB in the command, some 950 MB in Redis


class FetchedPrints:
    """Finds the scheme of fingerprints by hashing the waiting requests, whose fingerprints are known too.

    Memory: 8 bytes for each fingerprint, 24 for each request that waits.
    """

    def __init__(self, known: npt.NDArray[np.uint64]) -> None:
        """`known` are the other crawler's fingerprints, ascending."""
        self._known = known
        self._waiting = {scheme: array("Q") for scheme in SCHEMES}

    def __repr__(self) -> str:
        return f"<FetchedPrints known={len(self._known)}>"

    def note_waiting(self, fields: dict[str, Any]) -> None:
        """Add a waiting request that the other crawler has marked as seen."""
        if not len(self._known):
            return
        for scheme, prints in self._waiting.items():
            try:
                prints.append(
                    fingerprint_of(scheme, fields["url"], fields.get("method") or "GET", fields.get("body") or b"")
                )
            except (ValueError, TypeError, AttributeError, LookupError):
                return  # it has no fingerprint, or is no request

    async def keep(self, crawl: OpenedCrawl, where: str, likely: str, remedy: str) -> list[str]:
        """Store the fingerprints in the crawl's Redis, and return warnings about refetches.

        `likely` is the scheme, one of `SCHEMES`, if no waiting request shows it. `where` and `remedy` are for messages.

        Raises:
            ConfigError: the scheme is unknown.
            TransientStoreError: Redis does not answer, or has no room for them.
        """
        if not len(self._known):
            return [f"{where or 'a dupefilter'} is empty or not read: pages that were fetched may be fetched again"]
        client, name = crawl.client, crawl.config.crawl.name
        earlier = await client.command("HGET", CrawlKeys(name).control, FINGERPRINTS)
        is_shown = any(map(len, self._waiting.values()))
        likely = likely if earlier is None else earlier.decode()
        scheme, waiting = self._scheme(where, remedy) if is_shown else (likely, np.empty(0, np.uint64))
        if earlier is not None and earlier.decode() != scheme:
            raise ConfigError(
                f"crawl {name!r} has fingerprints made in another way ({earlier.decode()}, not {scheme}) from an "
                f"earlier import: import into another crawl"
            )
        await Fingerprints(client, name).change(self._known, waiting)
        await client.command("HSET", CrawlKeys(name).control, FINGERPRINTS, scheme)
        if is_shown:
            return []
        remark = f"nothing waits that would show how the fingerprints in {where} are made; {scheme} is assumed"
        return [f"{remark}, and if that is wrong, pages are fetched again"]

    def _scheme(self, where: str, remedy: str) -> tuple[str, npt.NDArray[np.uint64]]:
        found: dict[str, npt.NDArray[np.uint64]] = {
            scheme: np.frombuffer(prints, dtype=np.uint64) if prints else np.empty(0, np.uint64)
            for scheme, prints in self._waiting.items()
        }
        hits = {scheme: int(np.isin(prints, self._known).sum()) for scheme, prints in found.items()}
        best = max(hits, key=lambda scheme: hits[scheme])
        if not hits[best]:
            raise ConfigError(
                f"the fingerprints in {where} are not made as Scrapy or scrapy-redis makes them: import without them, "
                f"{remedy}; then pages may be fetched again"
            )
        return best, found[best]
