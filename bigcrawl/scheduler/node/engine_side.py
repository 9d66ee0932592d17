"""What a node asks of the engine that fetches for it, and what it tells that engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.records.page_storage import PageStorage


def _nothing() -> None:
    """There is nothing to wake, and nothing under way."""


def _ignore(_fetches: int) -> None:
    """Nobody counts fetches at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSide:
    """The engine as its node sees it; none of the calls waits or raises, but for `revive_server`.

    Attributes:
        poll_ended: looks which fetches the engine is done with, and tells the handout.
        may_take: whether URLs may be taken for it.
        may_acknowledge: whether what has ended until now is safe: its items, and its pages.
        on_fatal: ends the crawl because of an error that waiting will not mend.
        wake: makes the engine ask for URLs now.
        break_off: gives up the fetches that are under way.
        note_limit: told how many pages may be fetched at a time, when that changes.
        revive_server: starts the embedded Redis again if it died; None where Redis is an operator's.
        storage: where pages are stored; None where they are not.
    """

    poll_ended: Callable[[], None]
    may_take: Callable[[], bool]
    may_acknowledge: Callable[[], bool]
    on_fatal: Callable[[BigcrawlError], None]
    wake: Callable[[], None] = _nothing
    break_off: Callable[[], None] = _nothing
    note_limit: Callable[[int], None] = _ignore
    revive_server: Callable[[], object] | None = None
    storage: PageStorage | None = None
