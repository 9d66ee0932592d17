"""Fetches robots.txt, and heads of URLs, through Scrapy's downloader, without the scheduler (step 10)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from bigcrawl.politeness.backoff_policy import is_failure
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, FetchAbortedError, error_outcome, is_own
from bigcrawl.scheduler.adapter.values.codec import NOT_STORABLE, PLAIN
from bigcrawl.scheduler.gates.closed import Closed
from bigcrawl.scheduler.gates.fetched import Fetched
from bigcrawl.scheduler.records.body import look_at_meta
from bigcrawl.url.header import url_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.records.passage import Space

logger = logging.getLogger(__name__)

# Half a file forbids less than the whole. A file that was cut for its size is complete enough.
_NOT_WHOLE = frozenset({"truncated-time", "dataloss"})

# The first 500 KiB count. The limit is higher because it also applies to the unpacked body. A longer file is broken
# off, if the download handler can do that.
_BYTES_MAX = 4 << 20

HEAD = "HEAD"

GIVEN_UP_MS = 1_000  # after this node gave up a robots.txt, its URL comes back so much later

# No retry, no redirect, no cookies of pages, no offsite filter: one request, and whatever answer it gets.
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


class RobotsFetch:
    """A `Fetch` by a crawler's engine.

    Args:
        crawler: has the engine.
        connection_keys: the keys of meta that decide how one connects.
    """

    def __init__(self, crawler: Crawler, connection_keys: Iterable[str] = ()) -> None:
        self._crawler = crawler
        self._probe = EngineProbe(crawler)
        self._connection_keys = tuple(connection_keys)

    async def __call__(self, url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b"") -> Fetched:
        """Fetch a URL once, by GET or HEAD, keeping gaps, as the request in the body `like` would connect.

        The status is None if there was no answer.

        Raises:
            Closed: this node gave up the fetch, or failed by itself, which says nothing about the host.
        """
        return await self.fetch(url, method, {**self._connection_meta(like), UNDER_LEASE: gaps})

    async def fetch(self, url: str, method: str = "GET", more_meta: Mapping[str, object] | None = None) -> Fetched:
        """Do the same with this meta besides."""
        meta = {**_META, **(more_meta or {})}
        if method == HEAD:
            meta["download_maxsize"] = 0  # the size that it tells is of a body that does not come
        request = Request(url, method=method, callback=NO_CALLBACK, meta=meta, priority=1000)
        await self._probe.until_opened()
        try:
            response = await self._crawler.engine.download_async(request)
        except FetchAbortedError as error:
            raise Closed(retry_ms=GIVEN_UP_MS) from error
        except Exception as error:
            if is_own(error):
                raise Closed(error=error) from error
            logger.debug("no answer for %(url)s: %(error)r", {"url": url, "error": error})
            outcome = error_outcome(error)
            return Fetched(None, failure=outcome if is_failure(outcome) else "")
        if method != HEAD and not _NOT_WHOLE.isdisjoint(response.flags):
            logger.debug("%(url)s did not arrive complete", {"url": url})
            return Fetched(None)
        age, retry_after, date = (
            (response.headers.get(name) or b"").decode("latin-1") for name in (b"Age", b"Retry-After", b"Date")
        )
        cache_control = b", ".join(response.headers.getlist(b"Cache-Control")).decode("latin-1")
        length = response.headers.get(b"Content-Length") or b""
        return Fetched(
            response.status,
            b"" if method == HEAD else response.body,
            url_in(response.headers.getlist(b"Location"), url) or "",
            cache_control,
            age,
            retry_after,
            date,
            content_type=b",".join(response.headers.getlist(b"Content-Type")),
            content_length=length,
        )

    def _connection_meta(self, body: bytes) -> dict[str, Any]:
        if not body or not self._connection_keys:
            return {}
        try:
            meta = look_at_meta(body, self._connection_keys)
            return {key: PLAIN.unpacked(value) for key, value in meta.items()}
        except NOT_STORABLE:
            return {}  # who decodes the whole reports the damage
