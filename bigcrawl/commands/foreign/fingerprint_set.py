"""The fingerprints of what another crawler has fetched: those that it knows, without those of what waits there."""

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

    from bigcrawl.commands.opened_crawl import OpenedCrawl

PRINTS_MAX: Final = 100_000_000  # 800 MB in the command, some 950 MB in Redis


class FetchedPrints:
    """Finds out how the fingerprints are made, by the requests that wait: those are known too.

    Memory: 8 bytes for each fingerprint, 24 for each request that waits.
    """

    def __init__(self, known: npt.NDArray[np.uint64]) -> None:
        """`known` are those that the other crawler knows, ascending."""
        self._known = known
        self._waiting = {scheme: array("Q") for scheme in SCHEMES}

    def __repr__(self) -> str:
        return f"<FetchedPrints known={len(self._known)}>"

    def note_waiting(self, fields: dict[str, Any]) -> None:
        """Note a request that waits, and that the other crawler has noted as seen."""
        if not len(self._known):
            return
        for scheme, prints in self._waiting.items():
            try:
                prints.append(
                    fingerprint_of(scheme, fields["url"], fields.get("method") or "GET", fields.get("body") or b"")
                )
            except ValueError:
                return  # it has no fingerprint

    async def keep(self, crawl: OpenedCrawl, where: str) -> list[str]:
        """Keep those of what was fetched in the crawl's Redis. Return lines about what may be missing.

        Raises:
            ConfigError: they are made in an unknown way.
            TransientStoreError: Redis does not answer, or has no room for them.
        """
        if not len(self._known):
            return [f"{where or 'a dupefilter'} is empty or not read: pages that were fetched may be fetched again"]
        scheme, waiting = self._scheme(where)
        client, name = crawl.client, crawl.config.crawl.name
        earlier = await client.command("HGET", CrawlKeys(name).control, FINGERPRINTS)
        if earlier is not None and earlier.decode() != scheme:
            raise ConfigError(
                f"crawl {name!r} has fingerprints made in another way ({earlier.decode()}, not {scheme}) from an "
                f"earlier import: import into another crawl"
            )
        await Fingerprints(client, name).change(self._known, waiting)
        await client.command("HSET", CrawlKeys(name).control, FINGERPRINTS, scheme)
        return []

    def _scheme(self, where: str) -> tuple[str, npt.NDArray[np.uint64]]:
        found: dict[str, npt.NDArray[np.uint64]] = {
            scheme: np.frombuffer(prints, dtype=np.uint64) if prints else np.empty(0, np.uint64)
            for scheme, prints in self._waiting.items()
        }
        hits = {scheme: int(np.isin(prints, self._known).sum()) for scheme, prints in found.items()}
        best = max(hits, key=lambda scheme: hits[scheme])
        if len(found[best]) and not hits[best]:
            raise ConfigError(
                f"the fingerprints in {where} are not made as Scrapy or scrapy-redis makes them: import without them, "
                f"--dupefilter-key ''; then pages may be fetched again"
            )
        return best, found[best]
