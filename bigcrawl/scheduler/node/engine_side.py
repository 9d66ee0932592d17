"""What a node needs of the engine that fetches its URLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.records.page_storage import PageStorage
    from bigcrawl.scheduler.rules.callbacks import Callbacks


def _nothing() -> None:
    """Does nothing: there is no engine to wake, and nothing under way."""


def _never() -> bool:
    """The engine is never paused."""
    return False


def _ignore(_fetches: int) -> None:
    """Does nothing: nobody wants to know the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSide:
    """The engine as its node sees it. No call waits or raises, except `revive_server`.

    Attributes:
        poll_ended: finds the fetches that the engine is done with, and ends them in the handout.
        may_take: returns whether URLs may be taken for the engine.
        may_acknowledge: returns whether the items and pages of all URLs that have ended are safe.
        on_fatal: ends the crawl because of an error that waiting does not solve.
        wake: makes the engine ask for URLs now.
        break_off: gives up the fetches under way.
        is_paused: returns whether the engine is paused, because a disk is full or by an operator's order.
        note_limit: called with each new limit on concurrent fetches.
        revive_server: starts the embedded Redis again if it died; None if Redis is an operator's.
        storage: where pages are stored; None if they are not.
        callbacks: say which requests the spider can run.
    """

    poll_ended: Callable[[], None]
    may_take: Callable[[], bool]
    may_acknowledge: Callable[[], bool]
    on_fatal: Callable[[BigcrawlError], None]
    wake: Callable[[], None] = _nothing
    break_off: Callable[[], None] = _nothing
    is_paused: Callable[[], bool] = _never
    note_limit: Callable[[int], None] = _ignore
    revive_server: Callable[[], object] | None = None
    storage: PageStorage | None = None
    callbacks: Callbacks = ANY_CALLBACKS
