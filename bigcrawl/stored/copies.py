from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request

    from bigcrawl.stored.pages import StoredPage


class StoredCopies:
    def __init__(self) -> None:
        self._originals: WeakKeyDictionary[Request, str] = WeakKeyDictionary()

    def record_original(self, request: Request, page: StoredPage) -> None:
        if page.original_url:
            self._originals[request] = page.original_url

    def record_page(self, request: Request, fields: Mapping[str, str]) -> None:
        """Do nothing: the crawl's notes are in its files."""

    def record_conversion(self, request: Request, content_type: str, body: bytes) -> None:
        """Do nothing, likewise."""

    def original_of(self, request: Request) -> str:
        """Return the URL of the page whose body answers this request; empty if the answer is not a copy."""
        return self._originals.get(request, "")
