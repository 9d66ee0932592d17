"""Tells which stored pages are copies of others, as the page storage of the crawl did when it wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request

    from bigcrawl.stored.pages import StoredPage


class StoredCopies:
    """Knows what a page storage has noted of pages, in a run that stores none; a `PageNotes`."""

    def __init__(self) -> None:
        self._originals: WeakKeyDictionary[Request, str] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<StoredCopies {len(self._originals)}>"

    def note(self, request: Request, page: StoredPage) -> None:
        """A request is answered by this page."""
        if page.original_url:
            self._originals[request] = page.original_url

    def note_page(self, request: Request, fields: Mapping[str, str]) -> None:
        """Do nothing: what the crawl noted is in its files."""

    def original_of(self, request: Request) -> str:
        """The URL of the page to which the answer refers for its body; empty if it refers to none."""
        return self._originals.get(request, "")
