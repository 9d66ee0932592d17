from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.rules.blacklist import Blacklist


class Outlet(Protocol):
    """Takes URLs from the gates; in a node, `handout.handout.Handout`."""

    def admit(self, held: HeldUrl) -> None: ...

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "") -> None:
        """Return the URL to its queue. Its host rests for `delay_ms`; `counter` rises by one."""

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """End the URL unfetched; `rule` is the forbidding line of robots.txt."""

    def fail(self, held: HeldUrl, outcome: str, error: Exception | None = None) -> None:
        """Fail the URL before its fetch, because of its host (error:<kind>) or of `error`. It counts as a try."""


class NotesFetches(Protocol):
    def fetching_from(self, host: str) -> AbstractContextManager[None]:
        """Return the context for fetching a robots.txt or head. The host rests after it, even after a failure."""


class SetsAside(Protocol):
    """The blacklist, and the way back to disk; in a node, `node.set_aside.Aside`."""

    @property
    def blacklist(self) -> Blacklist: ...

    def covers(self, held: HeldUrl) -> bool: ...

    def refuses_address(self, address: str) -> bool: ...

    def set_aside(self, held: HeldUrl) -> None:
        """Return the URL to disk until the blacklist no longer covers it."""

    def put_unrunnable(self, held: HeldUrl, why: str) -> None:
        """Return the URL to disk until another owner, or a restart of this one, may run it."""


class Sweeps(Protocol):
    """Ends a host's URLs in Redis in bulk; in a node, `node.forbidden_sweep.Sweeper`."""

    def is_due(self, host: str) -> bool: ...

    async def sweep(self, partition: int, host: str, reason: str = "forbidden") -> None: ...
