"""Visits pages again on conditions, and keeps pages that have not changed from the spider (steps 11 to 13).

A page's next request has If-None-Match and If-Modified-Since, as its last answer said. A 304 costs no body. A page that
was sent whole is compared by a digest of its unpacked body. Either way an unchanged page does not reach the spider; its
errback hears of it, as of an answer with an error status.

The conditions are added next to the downloader and removed there, because Scrapy copies a request's headers to those it
makes from it: on another URL they could get a 304 for a page that nobody has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest, NotConfigured

from bigcrawl.config import read_config
from bigcrawl.revisiting.policies import NEVER
from bigcrawl.revisiting.visit import Answer, digest_of
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.scheduler.adapter.request_codec import VISIT
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

CONDITIONS_ORDER: Final = 990  # next to the downloader
CHANGES_ORDER: Final = 585  # bodies are unpacked, see Scrapy's HttpCompressionMiddleware; redirects are dealt with
_NONE_MATCH, _MODIFIED_SINCE = b"If-None-Match", b"If-Modified-Since"
_OK = range(200, 300)
_MOVED = (301, 308)
_CONDITIONAL = ("GET", "HEAD")  # to others, a page that has not changed is no 304, but the error 412 (RFC 9110 §13.1.2)


class PageUnchangedError(IgnoreRequest):
    """A page is as it was at the visit before."""


class _Middleware:
    """What both have: they are installed if pages are visited again."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats_buffer = StatsBuffer(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if read_config(crawler.settings).revisits.rule == NEVER:
            raise NotConfigured("BIGCRAWL_REVISIT is never")
        return cls(crawler)

    def _note(self, request: Request, answer: Answer) -> bool:
        """Plan the next visit of a handed-out request's URL, and tell the spider what this one has found.

        Return whether the page has not changed.
        """
        frontier = frontier_of(self._crawler)
        visited = None if frontier is None else frontier.started.note_visit(request, answer)
        if visited is None:
            return False
        before, after = visited
        if visited.is_unchanged:
            self._stats_buffer.inc_value("bigcrawl/visits/unchanged")
            return True
        if after is None:
            return False  # the request is not for a page
        if before is None:
            change = "added"
            self._stats_buffer.inc_value("bigcrawl/visits/added")
        elif before.changed_s == after.changed_s:
            return False  # the visit has brought nothing
        else:
            change = "gone" if after.is_gone else "changed"
            self._stats_buffer.inc_value("bigcrawl/visits/gone" if after.is_gone else "bigcrawl/visits/changed")
        request.meta[VISIT] = {"change": change, "time": after.changed_s, "visits": after.number}
        return False


class Conditions(_Middleware):
    """A downloader middleware that makes requests conditional, and takes note of answers without a page."""

    def process_request(self, request: Request) -> None:
        frontier = frontier_of(self._crawler)
        known = None if frontier is None else frontier.started.known_visit(request)
        if known is None or known.is_gone or request.method not in _CONDITIONAL:
            return
        given = {}
        if known.etag and _NONE_MATCH not in request.headers:
            given[_NONE_MATCH] = known.etag
        if known.modified and _MODIFIED_SINCE not in request.headers:
            given[_MODIFIED_SINCE] = known.modified
        if given:
            request.headers.update(given)
            request.meta[_GIVEN] = tuple(given)

    def process_response(self, request: Request, response: Response) -> Response:
        is_conditional = self._take_back(request)
        if response.status in _OK:
            return response
        if self._note(request, Answer(response.status, is_conditional=is_conditional)):
            request.meta[_UNCHANGED] = True
        elif response.status in _MOVED and getattr(self._crawler.spider, "follows_moved_pages", False):
            visit = request.meta.get(VISIT)
            if visit is not None and visit["change"] == "gone":
                request.meta["dont_redirect"] = True
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._take_back(request)

    def _take_back(self, request: Request) -> bool:
        """Remove the conditions. Return whether there were any."""
        given = request.meta.pop(_GIVEN, ())
        for name in given:
            del request.headers[name]
        return bool(given)


class Changes(_Middleware):
    """A downloader middleware that finds out by digests whether pages have changed, and keeps unchanged ones back.

    Those of a 304, too, once other middlewares have seen it: it may set cookies.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        is_unchanged = request.meta.pop(_UNCHANGED, False)
        if response.status in _OK:
            etag, modified = _value(response, b"ETag"), _value(response, b"Last-Modified")
            is_unchanged = self._note(request, Answer(response.status, digest_of(response.body), etag, modified))
        if is_unchanged:
            raise PageUnchangedError(f"{request.url} has not changed")
        return response


_GIVEN = "_bigcrawl_conditions"
_UNCHANGED = "_bigcrawl_unchanged"


def _value(response: Response, name: bytes) -> bytes:
    """The value of a header; empty if it is missing or sent twice."""
    values: list[Any] = response.headers.getlist(name)
    return values[0] if len(values) == 1 and isinstance(values[0], bytes) else b""
