"""What the frontier needs from the components that store pages and items: whether they are safe."""

from __future__ import annotations

from typing import Protocol


class PageStorage(Protocol):
    """Stores the crawl's pages."""

    def is_flushed(self) -> bool:
        """Whether it accepts pages. While it does not, nothing is fetched or acknowledged."""

    @property
    def pages(self) -> int:
        """How many pages, and notes on pages, it has been given."""

    @property
    def safe_pages(self) -> int:
        """How many of them, counted from the first, are safe. A URL that ended before that may be acknowledged."""

    def hurry(self) -> None:
        """Make those safe now that wait for others to become safe with them."""


class Feeds(Protocol):
    """Stores the crawl's items."""

    @property
    def is_stuck(self) -> bool:
        """Whether it accepts no more items. While it does not, nothing should be fetched."""

    def flush(self) -> bool:
        """Make all items so far safe, before their pages are acknowledged. If False, the pages must not be yet."""
