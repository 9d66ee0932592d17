"""The fingerprints of pages that another crawler has fetched: all of its fingerprints, minus those of its queue."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.scrapy_fingerprint import SCHEMES, fingerprint_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.commands.moving.importing import RequestSender

PRINTS_MAX: Final = 100_000_000  # 800 MB in the command, some 950 MB in Redis


class FetchedPrints:
    """Finds the scheme of fingerprints by hashing the waiting requests, whose fingerprints are known too.

    Memory: 8 bytes for each fingerprint, 24 for each request that waits.
    """

    def __init__(self, known: npt.NDArray[np.uint64]) -> None:
        """Take the other crawler's fingerprints, in ascending order."""
        self._known = known
        self._waiting = {scheme: array("Q") for scheme in SCHEMES}

    def __repr__(self) -> str:
        return f"<FetchedPrints known={len(self._known)}>"

    def record_waiting(self, fields: dict[str, Any]) -> None:
        if not len(self._known):
            return
        for scheme, prints in self._waiting.items():
            try:
                prints.append(
                    fingerprint_of(scheme, fields["url"], fields.get("method") or "GET", fields.get("body") or b"")
                )
            except (ValueError, TypeError, AttributeError, LookupError):
                return  # it has no fingerprint, or is no request

    async def store_prints(self, sender: RequestSender, where: str, likely: str, remedy: str) -> list[str]:
        """Store the fingerprints in the crawl's Redis, and return warnings about refetches.

        `likely` is the scheme if no waiting request shows it. Raises ConfigError if the scheme is unknown.
        """
        if not len(self._known):
            return [f"{where or 'a dupefilter'} is empty or not read: pages that were fetched may be fetched again"]
        is_shown = any(map(len, self._waiting.values()))
        scheme, waiting = self._likeliest_scheme(where, remedy) if is_shown else (likely, np.empty(0, np.uint64))
        scheme = await sender.keep_fetched(scheme, self._known, waiting, is_certain=is_shown)
        if is_shown:
            return []
        remark = f"nothing waits that would show how the fingerprints in {where} are made; {scheme} is assumed"
        return [f"{remark}, and if that is wrong, pages are fetched again"]

    def _likeliest_scheme(self, where: str, remedy: str) -> tuple[str, npt.NDArray[np.uint64]]:
        found: dict[str, npt.NDArray[np.uint64]] = {
            scheme: np.frombuffer(prints, dtype=np.uint64) if prints else np.empty(0, np.uint64)
            for scheme, prints in self._waiting.items()
        }
        hits = {scheme: int(np.isin(prints, self._known).sum()) for scheme, prints in found.items()}
        best = max(hits, key=lambda scheme: hits[scheme])
        if not hits[best]:
            raise ConfigError(
                f"the fingerprints in {where} are not those of Scrapy or scrapy-redis: import without them, "
                f"{remedy}; then pages may be fetched again"
            )
        return best, found[best]
