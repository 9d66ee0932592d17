"""What keeps a crawl's pages and items, as the frontier asks it whether they are safe."""

from __future__ import annotations

from typing import Protocol


class PageStorage(Protocol):
    """What keeps the crawl's pages."""

    def is_flushed(self) -> bool:
        """Whether it takes pages; while it does not, nothing is fetched or acknowledged."""

    @property
    def pages(self) -> int:
        """How many pages, and notes of them, it was given so far."""

    @property
    def safe_pages(self) -> int:
        """How many of them are safe, the first ones; a URL is acknowledged when it has ended before that."""


class Feeds(Protocol):
    """What keeps the crawl's items."""

    @property
    def is_stuck(self) -> bool:
        """Whether it takes no more; while it does not, nothing is to be fetched."""

    def flush(self) -> bool:
        """Make safe what was given so far, before the pages it came from are acknowledged; False: they must not be."""
