"""What a fetch that got no answer is counted as."""

from __future__ import annotations

import asyncio

from scrapy import exceptions as scrapy_errors

from bigcrawl.scheduler.records.outcomes import ABORTED

UNDER_LEASE = "under_lease"
"""The meta key of requests that were not handed out, and may be sent as long as those that were."""


class FetchAbortedError(scrapy_errors.IgnoreRequest):
    """A fetch was given up because the node stops, or has no lease; its URL goes back to its host's queue."""


class UrlRefusedError(scrapy_errors.IgnoreRequest):
    """The frontier does not fetch a URL, and its request has an errback that shall hear of it."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} is not fetched: {reason}")
        self.reason = reason


# First match wins; Scrapy's own exceptions since 2.15, whatever download handler raised them.
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (FetchAbortedError, ABORTED),
    (asyncio.CancelledError, ABORTED),
    (scrapy_errors.CannotResolveHostError, "error:dns"),
    (scrapy_errors.DownloadTimeoutError, "error:timeout"),
    (TimeoutError, "error:timeout"),
    (scrapy_errors.DownloadConnectionRefusedError, "error:refused"),
    (scrapy_errors.ResponseDataLossError, "error:dataloss"),
    (scrapy_errors.DownloadCancelledError, "error:too-large"),
    (scrapy_errors.UnsupportedURLSchemeError, "dropped:scheme"),
    (scrapy_errors.DownloadFailedError, "error:connection"),
)


# What Scrapy raises where a URL's robots.txt forbids it, or its host or that host's robots.txt cannot be had.
_AS_SCRAPY: dict[str, tuple[type[Exception], str]] = {
    "forbidden": (scrapy_errors.IgnoreRequest, "Forbidden by robots.txt"),
    "unresolved": (scrapy_errors.CannotResolveHostError, "DNS has no address for its host"),
    "error:dns": (scrapy_errors.CannotResolveHostError, "DNS does not answer for its host"),
    "error:timeout": (scrapy_errors.DownloadTimeoutError, "its host took too long over robots.txt"),
    "error:refused": (scrapy_errors.DownloadConnectionRefusedError, "its host refused a connection for robots.txt"),
    "error:connection": (scrapy_errors.DownloadFailedError, "its host broke off over robots.txt"),
}


def refusal_error(url: str, reason: str) -> Exception:
    """What the errback of a URL that is not fetched is given."""
    if reason not in _AS_SCRAPY:
        return UrlRefusedError(url, reason)
    kind, text = _AS_SCRAPY[reason]
    return kind(f"{url} is not fetched: {text}")


def refusal_outcome(reason: str) -> str:
    """The counter for a URL that is not fetched; a failure of its host is the same as in a fetch."""
    return reason if reason.startswith("error:") else f"dropped:{reason}"


def error_outcome(error: BaseException) -> str:
    """The counter for an error of the downloader.

    `error:<kind>`; `aborted` for a fetch that was given up; `dropped:<reason>` for one that was never made.
    """
    if isinstance(error, UrlRefusedError):
        return refusal_outcome(error.reason)
    return next((slug for kind, slug in _KINDS if isinstance(error, kind)), "error:other")
