"""What a fetch of robots.txt brought, and what makes one (step 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch brought; status None when no answer came."""

    status: int | None
    body: bytes = b""
    location: str = ""
    cache_control: str = ""
    age: str = ""
    retry_after: str = ""
    date: str = ""
    failure: str = ""  # error:<kind>, where it was the host that failed


class Fetch(Protocol):
    """Fetches one URL through Scrapy's downloader, redirects not followed, no retries.

    Raises nothing but `Closed`, where this node may not fetch, or had to give up.
    """

    async def __call__(self, url: str) -> Fetched: ...


def asked_rest_ms(fetched: Fetched, now_ms: int, longest_ms: int) -> int:
    """How long an answer asks to be left alone, `longest_ms` at most; 0 when it does not."""
    if fetched.status not in OVERLOADED or not fetched.retry_after or not longest_ms:
        return 0
    return retry_after_ms(fetched.retry_after, fetched.date, now_ms, longest_ms)
