"""Interfaces between the gates and the rest of a node: fetching, destinations of URLs, and why a URL cannot pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bigcrawl.scheduler.records.at_gates import Space
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.rules.blacklist import Blacklist

WAIT_MS_MAX = 1_000


class Closed(Exception):  # noqa: N818 - an answer, not an error
    """The URL cannot pass: never (`reason`, `error`), for `retry_ms`, or while the blacklist covers it (`is_aside`).

    With both a reason and `is_aside`, a seed waits for other settings, and any other URL ends. `failure` is what
    failed at its host, for instance DNS. `error` is not the host's fault; the URL fails with it.
    """

    def __init__(
        self,
        reason: str = "",
        retry_ms: int = 0,
        failure: str = "",
        *,
        is_aside: bool = False,
        about: str = "",
        error: Exception | None = None,
    ) -> None:
        super().__init__(reason or ("blacklisted" if is_aside else f"for {retry_ms} ms"))
        self.reason = reason
        self.retry_ms = retry_ms
        self.failure = failure
        self.is_aside = is_aside
        self.about = about
        self.error = error


class Outlet(Protocol):
    """Takes URLs that leave the gates; in a node, `handout.handout.Handout`."""

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
    """The blacklist, and how URLs return to disk; in a node, `node.set_aside.Aside`."""

    @property
    def blacklist(self) -> Blacklist: ...

    def covers(self, held: HeldUrl) -> bool: ...

    def refuses_address(self, address: str) -> bool: ...

    def set_aside(self, held: HeldUrl) -> None:
        """Return the URL to disk until the blacklist no longer covers it."""

    def put_unrunnable(self, held: HeldUrl, why: str) -> None:
        """Return the URL to disk until another owner, or a restart of this one, may run it."""


class Sweeps(Protocol):
    """Ends a host's URLs in Redis in bulk; in a node, `node.set_aside.Sweeper`."""

    def is_due(self, host: str) -> bool: ...

    async def sweep(self, partition: int, host: str, reason: str = "forbidden") -> None: ...


@dataclass(frozen=True, slots=True)
class FetchedBody:
    status: int | None
    body: bytes = b""
    location: str = ""
    """A redirect's target as a canonical URL; empty without one."""

    cache_control: str = ""
    age: str = ""
    retry_after: str = ""
    date: str = ""
    failure: str = ""  # error:<kind>, if the host has failed
    content_type: bytes = b""
    content_length: bytes = b""


class Fetch(Protocol):
    """Fetches one URL through Scrapy's downloader, without redirects or retries, and waits for its turn in `gaps`.

    The encoded request `like` gives the proxy and other settings of the connection. Raises only `Closed`, if this node
    may not fetch, has given up, or failed by a fault of its own.
    """

    async def __call__(
        self, url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
    ) -> FetchedBody: ...


def asked_rest_ms(fetched: FetchedBody, now_ms: int, longest_ms: int) -> int:
    """Return the rest that the server requests, at most `longest_ms`; 0 if it requests none."""
    if fetched.status not in OVERLOADED or not fetched.retry_after or not longest_ms:
        return 0
    return retry_after_ms(fetched.retry_after, fetched.date, now_ms, longest_ms)
