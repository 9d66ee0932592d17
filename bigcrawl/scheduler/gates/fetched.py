from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.passage import Space


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
    """Return the rest that the server asks for, at most `longest_ms`; 0 for none."""
    if fetched.status not in OVERLOADED or not fetched.retry_after or not longest_ms:
        return 0
    return retry_after_ms(fetched.retry_after, fetched.date, now_ms, longest_ms)
