"""Whether the crawler from which this crawl was imported has fetched a URL; looked up once, when it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.scheduler.records.body import look_at_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.scheduler.records.held import HeldUrl

FINGERPRINTS: Final = "fingerprints"
"""The field of the control hash that names the fingerprints' scheme, see `bigcrawl.url.scrapy_fingerprint`."""


class FetchedElsewhere:
    def __init__(self, is_there: Callable[[int], Awaitable[bool]]) -> None:
        self._is_there = is_there
        self._scheme = ""

    def __repr__(self) -> str:
        return f"<FetchedElsewhere {self._scheme or 'nothing'}>"

    def adopt(self, field: bytes | None) -> None:
        """Look URLs up from now on; if `field` is None, stop, as few crawls are imported from another crawler."""
        self._scheme = ""
        if field is not None:
            from bigcrawl.url.scrapy_fingerprint import SCHEMES

            scheme = field.decode("ascii", "replace")
            self._scheme = scheme if scheme in SCHEMES else ""

    @property
    def is_known(self) -> bool:
        return bool(self._scheme)

    async def has(self, held: HeldUrl) -> bool:
        if not self._scheme:
            return False
        from bigcrawl.url.scrapy_fingerprint import fingerprint_of

        request = look_at_request(held.fields.body)
        if request.dont_filter:
            return False
        for url in dict.fromkeys((request.url, held.url)):
            try:
                fingerprint = fingerprint_of(self._scheme, url, request.method, request.body)
            except ValueError:
                continue
            if await self._is_there(fingerprint):
                return True
        return False
