"""How a fetch without an answer is counted."""

from __future__ import annotations

import asyncio

from scrapy import exceptions as scrapy_errors

from bigcrawl.scheduler.records.outcomes import ABORTED, OWN_ERROR

UNDER_LEASE = "under_lease"
"""The meta key of requests that were not handed out but also need the lease to be sent."""


UNPACKING = "the body is not packed as its Content-Encoding says"
"""The note of an error that a body raised which could not be unpacked."""


class FetchAbortedError(scrapy_errors.IgnoreRequest):
    """A fetch was given up because the node stops, or has no lease. Its URL goes back to its host's queue."""


class UrlRefusedError(scrapy_errors.IgnoreRequest):
    """The frontier does not fetch a URL, and its request has an errback that is told so."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} is not fetched: {reason}")
        self.reason = reason


# The first match counts. Since 2.15 Scrapy has its own exceptions for all download handlers.
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


# What Scrapy raises if robots.txt forbids a URL, or if its host or the robots.txt cannot be reached.
_AS_SCRAPY: dict[str, tuple[type[Exception], str]] = {
    "forbidden": (scrapy_errors.IgnoreRequest, "Forbidden by robots.txt"),
    "unresolved": (scrapy_errors.CannotResolveHostError, "DNS has no address for its host"),
    "error:dns": (scrapy_errors.CannotResolveHostError, "DNS does not answer for its host"),
    "error:timeout": (scrapy_errors.DownloadTimeoutError, "its host took too long over robots.txt"),
    "error:refused": (scrapy_errors.DownloadConnectionRefusedError, "its host refused a connection for robots.txt"),
    "error:connection": (scrapy_errors.DownloadFailedError, "its host broke off over robots.txt"),
}


def refusal_error(url: str, reason: str) -> Exception:
    """Return the error for the errback of a URL that is not fetched."""
    if reason not in _AS_SCRAPY:
        return UrlRefusedError(url, reason)
    kind, text = _AS_SCRAPY[reason]
    return kind(f"{url} is not fetched: {text}")


def refusal_outcome(reason: str) -> str:
    """Return the counter for a URL that is not fetched. A failure of its host counts as in a fetch."""
    return reason if reason.startswith("error:") else f"dropped:{reason}"


def error_outcome(error: BaseException) -> str:
    """Return the counter for an error of the downloader.

    It is `error:<kind>`, `aborted` for a fetch that was given up, or `dropped:<reason>` for one that was never made.
    """
    if isinstance(error, UrlRefusedError):
        return refusal_outcome(error.reason)
    if UNPACKING in getattr(error, "__notes__", ()):
        return "error:dataloss"
    return next((slug for kind, slug in _KINDS if isinstance(error, kind)), OWN_ERROR)


def is_own(error: BaseException) -> bool:
    """Whether an error says nothing of the host: it is that of a download handler, or of a middleware's code."""
    return error_outcome(error) == OWN_ERROR and not isinstance(error, scrapy_errors.IgnoreRequest)
