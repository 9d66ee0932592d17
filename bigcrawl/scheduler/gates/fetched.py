"""A fetch of robots.txt, or of a URL's head, and what came of it (step 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.passage import Space


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of one fetch; the status is None if there was no answer."""

    status: int | None
    body: bytes = b""
    location: str = ""
    """Where it leads, as a canonical URL; empty: nowhere."""

    cache_control: str = ""
    age: str = ""
    retry_after: str = ""
    date: str = ""
    failure: str = ""  # error:<kind>, if the host has failed
    content_type: bytes = b""
    content_length: bytes = b""


class Fetch(Protocol):
    """Fetches one URL through Scrapy's downloader, and keeps `gaps`. It follows no redirects and does not retry.

    It connects as the request in the body `like` would. It raises only `Closed`: this node may not fetch, had to give
    up, or fails by itself.
    """

    async def __call__(
        self, url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
    ) -> Fetched: ...


def asked_rest_ms(fetched: Fetched, now_ms: int, longest_ms: int) -> int:
    """How long the server asks to be left alone, at most `longest_ms`; 0 if it does not ask."""
    if fetched.status not in OVERLOADED or not fetched.retry_after or not longest_ms:
        return 0
    return retry_after_ms(fetched.retry_after, fetched.date, now_ms, longest_ms)
