from __future__ import annotations

from typing import Protocol


class PageStorage(Protocol):
    def is_flushed(self) -> bool:
        """Whether it accepts pages. While it does not, nothing is fetched or acknowledged."""

    @property
    def pages(self) -> int: ...

    @property
    def safe_pages(self) -> int:
        """How many of `pages`, counted from the first, are safe."""

    def hurry(self) -> None:
        """Make the stored pages safe now, rather than later together with others."""


class Feeds(Protocol):
    @property
    def is_stuck(self) -> bool:
        """Whether it accepts no more items, so that nothing should be fetched."""

    def flush(self) -> bool:
        """Make all items so far safe. If this returns False, their pages must not be acknowledged yet."""
