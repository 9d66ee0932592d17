"""Whether a URL was fetched by the crawler from which this crawl was imported (step 10).

That crawler knows URLs by fingerprints, which cannot be turned into our keys. So a URL is new to the seen check, and is
looked up when it is taken: once in its life, and not at all if its request has `dont_filter`. The flag `UNCHECKED` says
nothing here: URLs that went back to disk have it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.body import look_at_request
from bigcrawl.url.scrapy_fingerprint import SCHEMES, fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.scheduler.records.held import HeldUrl


class FetchedElsewhere:
    """Looks URLs up, unless the crawl was not imported."""

    def __init__(self, is_there: Callable[[int], Awaitable[bool]]) -> None:
        """`is_there` looks up a fingerprint; see `fingerprints.Fingerprints.have`."""
        self._is_there = is_there
        self._scheme = ""

    def __repr__(self) -> str:
        return f"<FetchedElsewhere {self._scheme or 'nothing'}>"

    def adopt(self, field: bytes | None) -> None:
        """Make fingerprints in the way that this field of the control hash names; None: there are none."""
        scheme = (field or b"").decode("ascii", "replace")
        self._scheme = scheme if scheme in SCHEMES else ""

    @property
    def is_known(self) -> bool:
        """Whether there are fingerprints to compare with."""
        return bool(self._scheme)

    async def has(self, held: HeldUrl) -> bool:
        """Whether the other crawler had met a URL.

        Raises:
            TransientStoreError: Redis does not answer.
        """
        if not self._scheme:
            return False
        request = look_at_request(held.fields.body)
        if request.dont_filter:
            return False
        # In its spelling, and in the canonical one: the other crawler may have found either.
        for url in dict.fromkeys((request.url, held.url)):
            try:
                fingerprint = fingerprint_of(self._scheme, url, request.method, request.body)
            except ValueError:
                continue
            if await self._is_there(fingerprint):
                return True
        return False
