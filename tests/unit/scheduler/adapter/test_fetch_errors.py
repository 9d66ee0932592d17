"""What a fetch without an answer is counted as."""

from __future__ import annotations

import asyncio

import pytest
from OpenSSL import SSL
from scrapy import exceptions as scrapy_errors
from twisted.internet import defer
from twisted.internet import error as tx
from twisted.python.failure import Failure
from twisted.web._newclient import RequestGenerationFailed, RequestTransmissionFailed
from twisted.web.client import ResponseFailed, ResponseNeverReceived
from twisted.web.error import SchemeNotSupported

from bigcrawl.scheduler.adapter.fetch_errors import (
    FetchAbortedError,
    UrlRefusedError,
    error_outcome,
    is_own,
    refusal_error,
    refusal_outcome,
)
from bigcrawl.scheduler.records.outcomes import ABORTED
from bigcrawl.stats import CRAWL_COUNTERS
from tests.support.running.tables import each


@each(
    "error, outcome",
    [
        (FetchAbortedError("stop"), ABORTED),
        (asyncio.CancelledError(), ABORTED),
        (UrlRefusedError("http://a.example/", "forbidden"), "dropped:forbidden"),
        (scrapy_errors.DownloadTimeoutError(), "error:timeout"),
        (TimeoutError(), "error:timeout"),
        (scrapy_errors.CannotResolveHostError(), "error:dns"),
        (scrapy_errors.DownloadConnectionRefusedError(), "error:refused"),
        (scrapy_errors.ResponseDataLossError(), "error:dataloss"),
        (scrapy_errors.DownloadCancelledError(), "error:too-large"),
        (scrapy_errors.DownloadFailedError(), "error:connection"),
        (ZeroDivisionError(), "error:other"),
        (tx.ConnectError(), "error:connection"),
        (tx.NoRouteError(), "error:connection"),
        (tx.SSLError(), "error:connection"),
        (tx.ConnectionRefusedError(), "error:refused"),
        (tx.TCPTimedOutError(), "error:timeout"),
        (tx.TimeoutError(), "error:timeout"),
        (defer.TimeoutError(), "error:timeout"),
        (tx.DNSLookupError(), "error:dns"),
        (tx.UnknownHostError(), "error:dns"),
        (tx.ConnectionLost(), "error:connection"),
        (tx.ConnectionDone(), "error:connection"),
        (ResponseNeverReceived([Failure(SSL.Error([]))]), "error:connection"),
        (ResponseFailed([Failure(tx.ConnectionLost())]), "error:connection"),
        (RequestTransmissionFailed([]), "error:connection"),
        (SchemeNotSupported("x"), "dropped:scheme"),
        (tx.ConnectBindError(), "error:other"),
        (tx.ConnectingCancelledError(None), "error:other"),
        (tx.NotConnectingError(), "error:other"),
        (RequestGenerationFailed([]), "error:other"),
        (SSL.Error([]), "error:other"),
        (OSError(), "error:other"),
        (KeyError(), "error:other"),
        (scrapy_errors.NotSupported(), "error:other"),
    ],
)
def test_errors_are_counted_by_kind(error: BaseException, outcome: str) -> None:
    """The most special kind wins; what nobody thought of is counted too, and counts as ours."""
    assert error_outcome(error) == outcome
    assert is_own(error) == (outcome == "error:other")


@pytest.mark.parametrize(
    ("reason", "kind", "outcome"),
    [
        ("forbidden", scrapy_errors.IgnoreRequest, "dropped:forbidden"),
        ("unresolved", scrapy_errors.CannotResolveHostError, "dropped:unresolved"),
        ("error:dns", scrapy_errors.CannotResolveHostError, "error:dns"),
        ("error:timeout", scrapy_errors.DownloadTimeoutError, "error:timeout"),
        ("error:refused", scrapy_errors.DownloadConnectionRefusedError, "error:refused"),
        ("error:connection", scrapy_errors.DownloadFailedError, "error:connection"),
        ("poison", UrlRefusedError, "dropped:poison"),
    ],
)
def test_errback_is_given_scrapys_own_errors(reason: str, kind: type[Exception], outcome: str) -> None:
    """The very class, as a project's RETRY_EXCEPTIONS and stats name it; what it is counted as stays ours."""
    assert type(refusal_error("http://a.example/", reason)) is kind
    assert refusal_outcome(reason) == outcome


def test_every_kind_of_error_is_in_the_table_of_counters() -> None:
    """What is counted is documented."""
    known = {key for row in CRAWL_COUNTERS for key in row.keys}
    kinds = {
        "error:dns",
        "error:timeout",
        "error:refused",
        "error:dataloss",
        "error:too-large",
        "error:connection",
    }
    assert kinds | {"error:other"} <= known
