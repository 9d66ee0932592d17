from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb.scripts import NOTHING_MADE, NodesMade
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS, Callbacks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.records.held_urls import PageStorage


class EngineSide:
    """The base class of engines. No call waits or raises, except `revive_server`."""

    storage: PageStorage | None = None
    callbacks: Callbacks = ANY_CALLBACKS
    summed: NodesMade = NOTHING_MADE
    """How much of `made` heartbeats have added to the sums of the crawl, also those of a node whose start failed."""

    def poll_ended(self) -> None:
        """Find the fetches that the engine has finished, and end them in the handout."""

    def may_take(self) -> bool:
        return True

    def may_acknowledge(self) -> bool:
        """Whether the items and pages of all URLs that have ended are safe."""
        return True

    def is_paused(self) -> bool:
        """Whether the engine is paused, by a full disk or an operator's order."""
        return False

    def wake(self) -> None:
        """Make the engine ask for URLs now, once it is open."""

    def break_off(self) -> None:
        """Abandon the running fetches."""

    def sent_bytes(self) -> int:
        return 0

    def made(self) -> NodesMade:
        """Return the counts of scraped items, and of the log's warnings and errors, since the start."""
        return NOTHING_MADE

    def record_summed(self, made: NodesMade) -> None:
        self.summed = made

    def figures(self) -> Mapping[str, Any]:
        """Return the spider's own counts: each a number, or a part and its whole."""
        return {}

    def summary(self) -> Any:
        """Return the spider's knowledge of its web as small JSON; None if it has no such method."""
        return None

    def log_rows(self) -> Sequence[tuple[Any, ...]]:
        """Return the last warnings and errors, as rows of `logs.tail.LogRow`, the latest first."""
        return ()

    def sample_items(self, *, is_watched: bool) -> None:
        """Keep the text of the next item, or of several items while a viewer watches."""

    def last_items(self) -> Sequence[tuple[float, str]]:
        """Return times, in Unix seconds, and texts of the last sampled items, the latest first."""
        return ()

    def announce(self, event: str, facts: Mapping[str, Any]) -> None:
        """Report an event of the crawl to the application."""

    def record_limit(self, fetches: int) -> None:
        """Adopt a new limit on concurrent fetches."""

    def revive_server(self) -> None:
        """Start the embedded Redis again if it died; may take seconds. Raises BigcrawlError or OSError."""

    def on_fatal(self, error: BigcrawlError) -> None:
        raise NotImplementedError
