"""Where a taken URL goes from the gates (step 10): to be fetched, back to its queue, to its end, or back to disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.rules.blacklist import Blacklist


class Outlet(Protocol):
    """Where a URL goes from here; `handout.handout.Handout`, in a node."""

    def admit(self, held: HeldUrl) -> None:
        """It may be fetched now."""

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "") -> None:
        """It returns to its place; its host rests for `delay_ms`; `counter` is raised."""

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """It ends unfetched, counted under `reason`; `rule` is the line of robots.txt that forbids it."""

    def fail(self, held: HeldUrl, error: str) -> None:
        """Its host has failed before it was fetched, and it has an errback: a try like any other, error:<kind>."""


class SetsAside(Protocol):
    """The blacklist, and the way back to the disk; `node.set_aside.Aside`, in a node."""

    @property
    def blacklist(self) -> Blacklist:
        """The one in force."""

    def covers(self, held: HeldUrl) -> bool:
        """Whether a URL that is held must not be fetched, by its host, by itself, or by its address as far as known."""

    def refuses_address(self, address: str) -> bool:
        """Whether an address lies in a range that is on the blacklist."""

    def put(self, held: HeldUrl) -> None:
        """It goes back to the disk until the blacklist covers it no more."""


class Sweeps(Protocol):
    """Ends in bulk what a host has in Redis; `node.forbidden_sweep.Sweeper`, in a node."""

    def is_due(self, host: str) -> bool:
        """Whether a sweep of the host may pay now."""

    async def sweep(self, partition: int, host: str, reason: str = "forbidden") -> None:
        """End the host's URLs in Redis that end for the same reason; raises nothing."""
