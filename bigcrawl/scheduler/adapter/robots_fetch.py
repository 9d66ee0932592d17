"""Fetches robots.txt, and heads of URLs, through Scrapy's downloader, without the scheduler (step 10)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from bigcrawl.politeness.backoff_policy import is_failure
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, FetchAbortedError, error_outcome
from bigcrawl.scheduler.gates.closed import Closed
from bigcrawl.scheduler.gates.fetched import Fetched

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    "fresh_connection": True,
    "download_maxsize": _BYTES_MAX,
    "download_warnsize": 0,
    "download_truncate": True,
}


class RobotsFetch:
    """A `Fetch` by a crawler's engine. `more_meta` is added to the meta of each request."""

    def __init__(self, crawler: Crawler, more_meta: Mapping[str, object] | None = None) -> None:
        self._crawler = crawler
        self._probe = EngineProbe(crawler)
        self._more_meta = more_meta or {}

    async def __call__(self, url: str, method: str = "GET", gaps: tuple[Space, ...] = ()) -> Fetched:
        """Fetch a URL once, by GET or HEAD, keeping gaps. The status is None if there was no answer.

        Raises:
            Closed: this node gave up the fetch, which says nothing about the host.
        """
        meta = {**_META, **self._more_meta, UNDER_LEASE: gaps}
        if method == HEAD:
            meta["download_maxsize"] = 0  # the size that it tells is of a body that does not come
        request = Request(url, method=method, callback=NO_CALLBACK, meta=meta, priority=1000)
        await self._probe.until_opened()
        try:
            response = await self._crawler.engine.download_async(request)
        except FetchAbortedError as error:
            raise Closed(retry_ms=GIVEN_UP_MS) from error
        except Exception as error:  # noqa: BLE001 - whatever the error, there was no answer
            logger.debug("no answer for %(url)s: %(error)r", {"url": url, "error": error})
            outcome = error_outcome(error)
            return Fetched(None, failure=outcome if is_failure(outcome) else "")
        if method != HEAD and not _NOT_WHOLE.isdisjoint(response.flags):
            logger.debug("%(url)s did not arrive complete", {"url": url})
            return Fetched(None)
        location, age, retry_after, date = (
            (response.headers.get(name) or b"").decode("latin-1")
            for name in (b"Location", b"Age", b"Retry-After", b"Date")
        )
        cache_control = b", ".join(response.headers.getlist(b"Cache-Control")).decode("latin-1")
        kind, length = (response.headers.get(name) or b"" for name in (b"Content-Type", b"Content-Length"))
        return Fetched(
            response.status,
            b"" if method == HEAD else response.body,
            location,
            cache_control,
            age,
            retry_after,
            date,
            content_type=kind,
            content_length=length,
        )
