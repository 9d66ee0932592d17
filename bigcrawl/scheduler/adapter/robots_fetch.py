"""Fetches robots.txt files and heads of URLs through Scrapy's downloader, without the scheduler."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from bigcrawl.politeness.backoff_policy import is_failure
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, FetchAbortedError, error_outcome, is_own
from bigcrawl.scheduler.adapter.values.codec import PLAIN, ValueCodec
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody
from bigcrawl.scheduler.records.body import look_at_header, look_at_meta
from bigcrawl.url.header import url_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.records.at_gates import Space

logger = logging.getLogger(__name__)

# Half a file forbids less than the whole; one cut for its size is complete enough.
_NOT_WHOLE = frozenset({"truncated-time", "dataloss"})

# The first 500 KiB count; this higher limit also applies to the unpacked body.
_BYTES_MAX = 4 << 20

HEAD = "HEAD"

GIVEN_UP_MS = 1_000

# No retry, redirect, page cookies or offsite filter: one request, and any answer to it.
_META = {
    "dont_retry": True,
    "dont_redirect": True,
    "dont_merge_cookies": True,
    "dont_cache": True,
    "allow_offsite": True,
    "handle_httpstatus_all": True,
    "dont_obey_robotstxt": True,
    "verbatim_url": True,
    UNDER_LEASE: (),
    "fresh_connection": True,
    "download_maxsize": _BYTES_MAX,
    "download_warnsize": 0,
    "download_truncate": True,
}


# Scrapy moves a proxy's name and password from the URL in meta to this header.
_CREDENTIALS = b"Proxy-Authorization"
_AUTH_PROXY = "_auth_proxy"


class ConnectionOptions(NamedTuple):
    meta: dict[str, Any]
    headers: dict[bytes, list[bytes]]


_ANY: Final = ConnectionOptions({}, {})


def connection_of(request: Request, keys: Iterable[str]) -> ConnectionOptions:
    """Return how a request connects, according to these meta keys. A proxy's credentials go to no other proxy."""
    return _connection_options(request.meta, request.headers.getlist(_CREDENTIALS), keys)


def _connection_options(meta: Mapping[str, Any], credentials: list[bytes], keys: Iterable[str]) -> ConnectionOptions:
    chosen = {key: meta[key] for key in keys if key in meta}
    if not chosen.get("proxy"):
        return ConnectionOptions(chosen, {})
    if _AUTH_PROXY in meta:
        chosen[_AUTH_PROXY] = meta[_AUTH_PROXY]
    return ConnectionOptions(chosen, {_CREDENTIALS: credentials} if credentials else {})


class RobotsFetch:
    """A `Fetch` through a crawler's engine; the meta keys `connection_keys` decide how it connects."""

    def __init__(self, crawler: Crawler, connection_keys: Iterable[str] = (), values: ValueCodec = PLAIN) -> None:
        self._crawler = crawler
        self._probe = EngineProbe(crawler)
        self._connection_keys = tuple(connection_keys)
        self._values = values

    async def __call__(
        self, url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
    ) -> FetchedBody:
        """Fetch a URL once, keeping gaps, like the request in the body `like`. Raises Closed."""
        return await self.fetch(url, method, {UNDER_LEASE: gaps}, self._options_of_body(like))

    async def fetch(
        self,
        url: str,
        method: str = "GET",
        more_meta: Mapping[str, object] | None = None,
        connection: ConnectionOptions = _ANY,
    ) -> FetchedBody:
        meta = {**connection.meta, **_META, **(more_meta or {})}
        if method == HEAD:
            meta["download_maxsize"] = 0  # the Content-Length is that of a body that is not sent
        headers = connection.headers
        request = Request(url, method=method, callback=NO_CALLBACK, headers=headers, meta=meta, priority=1000)
        await self._probe.until_opened()
        try:
            response = await self._crawler.engine.download_async(request)
        except FetchAbortedError as error:
            raise Closed(retry_ms=GIVEN_UP_MS) from error
        except Exception as error:
            if method != HEAD:
                self._record_file(f"exception_count/{type(error)}")
            if is_own(error):
                raise Closed(error=error) from error
            logger.debug("no answer for %(url)s: %(error)r", {"url": url, "error": error})
            outcome = error_outcome(error)
            return FetchedBody(None, failure=outcome if is_failure(outcome) else "")
        location = url_in(response.headers.getlist(b"Location"), url) or ""
        if method != HEAD and not (location and 300 <= response.status < 400):
            self._record_file("response_count", f"response_status_count/{response.status}")
        if method != HEAD and not _NOT_WHOLE.isdisjoint(response.flags):
            logger.debug("%(url)s arrived incomplete", {"url": url})
            return FetchedBody(None)
        age, retry_after, date = (
            (response.headers.get(name) or b"").decode("latin-1") for name in (b"Age", b"Retry-After", b"Date")
        )
        cache_control = b", ".join(response.headers.getlist(b"Cache-Control")).decode("latin-1")
        length = response.headers.get(b"Content-Length") or b""
        return FetchedBody(
            response.status,
            b"" if method == HEAD else response.body,
            location,
            cache_control,
            age,
            retry_after,
            date,
            content_type=b",".join(response.headers.getlist(b"Content-Type")),
            content_length=length,
        )

    def _record_file(self, *keys: str) -> None:
        assert self._crawler.stats is not None
        for key in ("request_count", *keys):
            self._crawler.stats.inc_value(f"robotstxt/{key}")

    def _options_of_body(self, body: bytes) -> ConnectionOptions:
        if not body or not self._connection_keys:
            return _ANY
        try:
            packed = look_at_meta(body, (*self._connection_keys, _AUTH_PROXY))
            credentials = look_at_header(body, _CREDENTIALS)
        except ValueError:
            return _ANY  # the full decoder reports the damage
        meta = {}
        for key, value in packed.items():
            with suppress(Exception):  # of a function that the project names; the other keys still count
                meta[key] = self._values.unpack(value)
        return _connection_options(meta, credentials, self._connection_keys)
