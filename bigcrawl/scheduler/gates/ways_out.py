"""Where a taken URL goes from the gates (step 10): to the engine, back to its queue, to its end, or back to disk.

And who is told of fetches that do not go through the engine's hands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.rules.blacklist import Blacklist


class Outlet(Protocol):
    """Takes URLs from the gates; in a node, `handout.handout.Handout`."""

    def admit(self, held: HeldUrl) -> None:
        """The URL may be fetched now."""

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "") -> None:
        """The URL returns to its place in its queue. Its host rests for `delay_ms`; `counter` is raised by one."""

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """The URL ends unfetched, counted under `reason`. `rule` is the line of robots.txt that forbids it."""

    def fail(self, held: HeldUrl, outcome: str, error: Exception | None = None) -> None:
        """The URL fails before its fetch, by its host (error:<kind>) or by this error; this counts as a try."""


class NotesFetches(Protocol):
    """Measures the gaps at hosts; in a node, `handout.host_gaps.HostGaps`."""

    def fetching(self, host: str) -> AbstractContextManager[None]:
        """Fetch a robots.txt of the host, or ask for a URL by HEAD, in this block. Then the host rests in any case."""


class SetsAside(Protocol):
    """The blacklist, and the way back to disk; in a node, `node.set_aside.Aside`."""

    @property
    def blacklist(self) -> Blacklist:
        """The one in force."""

    def covers(self, held: HeldUrl) -> bool:
        """Whether the blacklist covers a held URL: its host, the URL itself, or its address if known."""

    def refuses_address(self, address: str) -> bool:
        """Whether an address is in a range on the blacklist."""

    def put(self, held: HeldUrl) -> None:
        """The URL goes back to disk until the blacklist no longer covers it."""

    def put_unrunnable(self, held: HeldUrl, why: str) -> None:
        """The URL goes back to disk until its partition has another owner, or this one has started again."""


class Sweeps(Protocol):
    """Ends a host's URLs in Redis in bulk; in a node, `node.forbidden_sweep.Sweeper`."""

    def is_due(self, host: str) -> bool:
        """Whether a sweep of the host may be worth its cost now."""

    async def sweep(self, partition: int, host: str, reason: str = "forbidden") -> None:
        """End the host's URLs in Redis that end for the same reason; raises nothing."""
