"""The engine that fetches a node's URLs, as the node sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS

if TYPE_CHECKING:
    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.records.page_storage import PageStorage
    from bigcrawl.scheduler.rules.callbacks import Callbacks


class EngineSide:
    """The base class of engines. No call waits or raises, except `revive_server`."""

    storage: PageStorage | None = None
    callbacks: Callbacks = ANY_CALLBACKS

    def poll_ended(self) -> None:
        """Find the fetches that the engine is done with, and end them in the handout."""

    def may_take(self) -> bool:
        return True

    def may_acknowledge(self) -> bool:
        """Whether the items and pages of all URLs that have ended are safe."""
        return True

    def is_paused(self) -> bool:
        """Whether the engine is paused, because a disk is full or by an operator's order."""
        return False

    def wake(self) -> None:
        """Make the engine ask for URLs now, once it is open."""

    def break_off(self) -> None:
        """Give up the fetches under way."""

    def sent_bytes(self) -> int:
        return 0

    def record_limit(self, fetches: int) -> None:
        """Adopt a new limit on concurrent fetches."""

    def revive_server(self) -> None:
        """Start the embedded Redis again if it died; may take seconds.

        Raises:
            BigcrawlError, OSError: it does not start.
        """

    def on_fatal(self, error: BigcrawlError) -> None:
        """End the crawl because of an error that waiting does not solve."""
        raise NotImplementedError
