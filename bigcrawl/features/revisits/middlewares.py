"""Makes revisits conditional requests, and withholds unchanged pages from the spider (steps 11 to 13 of a URL's life).

Without a 304, pages are compared by a digest of the decompressed body. For an unchanged page the errback is called.
The middleware next to the downloader removes the conditional headers again, because Scrapy copies a request's headers
to requests made from it: sent to another URL, they could get a 304 for a page that was never fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import HtmlResponse
from w3lib.encoding import http_content_type_encoding

from bigcrawl.config import read_config
from bigcrawl.features.revisits.page import NextVisits
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.links.page import charset_of
from bigcrawl.media_types import type_told
from bigcrawl.revisiting.rules import NEVER
from bigcrawl.revisiting.visit import Answer, digest_of
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.scheduler.adapter.request_codec import CHANGE
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.held import HeldUrl

CONDITIONS_ORDER: Final = 990  # next to the downloader
CHANGES_ORDER: Final = 585  # bodies are decompressed, see Scrapy's HttpCompressionMiddleware; redirects are handled
_NONE_MATCH, _MODIFIED_SINCE = b"If-None-Match", b"If-Modified-Since"
_OK = range(200, 300)
_MOVED = (301, 308)
_CONDITIONAL = ("GET", "HEAD")  # for other methods, an unchanged page gives a 412, not a 304 (RFC 9110 §13.1.2)


class PageUnchangedError(IgnoreRequest):
    """A page has not changed since its last visit."""


class _VisitMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats_buffer = StatsBuffer(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if read_config(crawler.settings).feature_config(RevisitConfig).rule == NEVER:
            raise NotConfigured("BIGCRAWL_REVISIT is never")
        return cls(crawler)

    def _visits_and_url(self, request: Request) -> tuple[NextVisits, HeldUrl] | None:
        frontier = frontier_of(self._crawler)
        node = None if frontier is None else frontier.node
        held = None if frontier is None else frontier.started.held_of(request)
        visits = None if node is None else node.observers.observer_of(NextVisits)
        return None if visits is None or held is None else (visits, held)

    def _plan_next_visit(self, request: Request, answer: Answer) -> bool:
        """Plan the next visit to the URL of a handed-out request, and return whether the page is unchanged."""
        planned = self._visits_and_url(request)
        if planned is None:
            return False
        visits, held = planned
        visited = visits.record_visit(held, answer)
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
            return False  # the visit has not shown whether the page changed
        else:
            change = "gone" if after.is_gone else "changed"
            self._stats_buffer.inc_value("bigcrawl/visits/gone" if after.is_gone else "bigcrawl/visits/changed")
        request.meta[CHANGE] = {"change": change, "time": after.changed_s, "visits": after.number}
        return False


class Conditions(_VisitMiddleware):
    """A downloader middleware that makes requests conditional, and records answers without a page."""

    def process_request(self, request: Request) -> None:
        planned = self._visits_and_url(request)
        known = None if planned is None else planned[0].known_of(planned[1])
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
        is_conditional = self._remove_conditions(request)
        if response.status in _OK:
            return response
        if self._plan_next_visit(request, Answer(response.status, is_conditional=is_conditional)):
            request.meta[_UNCHANGED] = True
        elif response.status in _MOVED and getattr(self._crawler.spider, "follows_moved_pages", False):
            visit = request.meta.get(CHANGE)
            if visit is not None and visit["change"] == "gone":
                request.meta["dont_redirect"] = True
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._remove_conditions(request)

    def _remove_conditions(self, request: Request) -> bool:
        given = request.meta.pop(_GIVEN, ())
        for name in given:
            del request.headers[name]
        return bool(given)


class Changes(_VisitMiddleware):
    """A downloader middleware that withholds unchanged pages, by digest or 304, after others have seen the answer."""

    def process_response(self, request: Request, response: Response) -> Response:
        is_unchanged = request.meta.pop(_UNCHANGED, False)
        if response.status in _OK:
            etag, modified = _header_value(response, b"ETag"), _header_value(response, b"Last-Modified")
            names = type_told(dict.get(response.headers, b"Content-Type")), _charset_of(response)
            answer = Answer(response.status, digest_of(response.body), etag, modified, False, *names)
            is_unchanged = self._plan_next_visit(request, answer)
        if is_unchanged:
            raise PageUnchangedError(f"{request.url} has not changed")
        return response


def middlewares_of(config: Config) -> Mapping[type, int]:
    return {Conditions: CONDITIONS_ORDER, Changes: CHANGES_ORDER}


_GIVEN = "_bigcrawl_conditions"
_UNCHANGED = "_bigcrawl_unchanged"


def _charset_of(response: Response) -> str:
    """Return the declared charset, or for HTML the detected one; empty if all bytes are ASCII."""
    declared = response.headers.get(b"Content-Type") or b""
    named = http_content_type_encoding(declared.decode("latin-1"))
    return named or (charset_of(response) or "" if isinstance(response, HtmlResponse) else "")


def _header_value(response: Response, name: bytes) -> bytes:
    values: list[Any] = response.headers.getlist(name)
    return values[0] if len(values) == 1 and isinstance(values[0], bytes) else b""
