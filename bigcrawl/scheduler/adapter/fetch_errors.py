from __future__ import annotations

import asyncio

from scrapy import exceptions as scrapy_errors

from bigcrawl.scheduler.records.outcomes import ABORTED, OWN_ERROR

UNDER_LEASE = "under_lease"
"""The meta key of requests, such as those for robots.txt, that are not handed out but are sent only under the lease."""


UNPACKING = "the body is not packed by its Content-Encoding"
"""The note added to the error of a body that cannot be unpacked."""


class FetchAbortedError(scrapy_errors.IgnoreRequest):
    """A fetch was given up because the node stops or has no lease. Its URL returns to its queue."""


class UrlRefusedError(scrapy_errors.IgnoreRequest):
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

# Twisted's, by name, because importing them would slow short crawls. The most specific class counts.
_TWISTED = {
    "twisted.internet.error.ConnectBindError": OWN_ERROR,
    "twisted.internet.error.ConnectError": "error:connection",
    "twisted.internet.error.ConnectionClosed": "error:connection",
    "twisted.internet.error.ConnectionRefusedError": "error:refused",
    "twisted.internet.error.DNSLookupError": "error:dns",
    "twisted.internet.error.TCPTimedOutError": "error:timeout",
    "twisted.internet.error.TimeoutError": "error:timeout",
    "twisted.internet.error.UnknownHostError": "error:dns",
    "twisted.internet.defer.TimeoutError": "error:timeout",
    "twisted.web._newclient.RequestTransmissionFailed": "error:connection",
    "twisted.web._newclient.ResponseFailed": "error:connection",  # also around errors of OpenSSL
    "twisted.web.error.SchemeNotSupported": "dropped:scheme",
}


_AS_SCRAPY: dict[str, tuple[type[Exception], str]] = {
    "forbidden": (scrapy_errors.IgnoreRequest, "Forbidden by robots.txt"),
    "unresolved": (scrapy_errors.CannotResolveHostError, "DNS has no address for its host"),
    "error:dns": (scrapy_errors.CannotResolveHostError, "DNS does not answer for its host"),
    "error:timeout": (scrapy_errors.DownloadTimeoutError, "its host took too long over robots.txt"),
    "error:refused": (scrapy_errors.DownloadConnectionRefusedError, "its host refused a connection for robots.txt"),
    "error:connection": (scrapy_errors.DownloadFailedError, "its host broke off over robots.txt"),
}


def refusal_error(url: str, reason: str) -> Exception:
    if reason not in _AS_SCRAPY:
        return UrlRefusedError(url, reason)
    kind, text = _AS_SCRAPY[reason]
    return kind(f"{url} is not fetched: {text}")


def refusal_outcome(reason: str) -> str:
    """Return the outcome to count for a URL that is not fetched. A failure of its host counts as in a fetch."""
    return reason if reason.startswith("error:") else f"dropped:{reason}"


def error_outcome(error: BaseException) -> str:
    """Return the outcome to count for an error: `error:<kind>`, `aborted`, or `dropped:<reason>` if never made."""
    if isinstance(error, UrlRefusedError):
        return refusal_outcome(error.reason)
    if UNPACKING in getattr(error, "__notes__", ()):
        return "error:dataloss"
    slug = next((slug for kind, slug in _KINDS if isinstance(error, kind)), "")
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return slug or next((_TWISTED[name] for name in names if name in _TWISTED), OWN_ERROR)


def is_own(error: BaseException) -> bool:
    """Return whether an error comes from a download handler or middleware, and not from the host."""
    return error_outcome(error) == OWN_ERROR and not isinstance(error, scrapy_errors.IgnoreRequest)
