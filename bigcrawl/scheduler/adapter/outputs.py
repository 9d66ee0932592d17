"""Where a crawler's pages and items go: whether these take more, and whether what they were given is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.page_storage import Feeds, PageStorage


class Outputs(NamedTuple):
    """The storage of pages and the feeds of items; None if the crawler has none of them."""

    storage: PageStorage | None = None
    feeds: Feeds | None = None

    def take_more(self) -> bool:
        """Whether both accept more. While they do not, nothing is taken."""
        if self.feeds is not None and self.feeds.is_stuck:
            return False
        return self.storage is None or self.storage.is_flushed()

    def make_safe(self) -> bool:
        """Make safe what has ended until now. False if it must not be acknowledged yet.

        Items are flushed. Pages are being made safe; `storage.safe_pages` says which are.
        """
        return (self.storage is None or self.storage.is_flushed()) and (self.feeds is None or self.feeds.flush())
