"""Drops pages by rules of their sites: by media type and charset, and by texts that eliminate a page.

A page of another kind ends at its headers. A page with such a text is neither stored nor indexed, no spider sees it,
and it is no original of copies. Source: Nexplorer §2.2.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Self
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, HtmlResponse, Response, TextResponse
from w3lib.encoding import http_content_type_encoding

from bigcrawl.config import read_config
from bigcrawl.links import decoded_start
from bigcrawl.links.page import charset_of
from bigcrawl.media_types import sniff_media_type, type_told
from bigcrawl.middlewares.page_filter import PageFilteredError
from bigcrawl.scheduler.adapter.registry import frontier_of, register_judge
from bigcrawl.scheduler.records.outcomes import CHARSET, MEDIA_TYPE, STRING
from bigcrawl.scheduler.rules.budget_rules import RuleBook
from bigcrawl.scheduler.rules.page_rules import CHARSETS, ELIMINATE, KINDS, SITE_LIMITS, PageRules, parse_page_rules
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.url.canonical import UrlError, canonicalize, host_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


_TYPE: Final = b"Content-Type"
_LOCATION: Final = b"Location"


class _Unpacking(HttpCompressionMiddleware):
    """Scrapy's unpacking without its counts: the page is counted later, when it is unpacked for its spider."""

    def __init__(self, *, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self.stats = None


class SitePages:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats_buffer = StatsBuffer(crawler)
        rules = parse_page_rules(read_config(crawler.settings).filters.rules)
        self._filters = [one for limits in rules.values() for one in limits.values()]
        numbers = iter(range(len(self._filters)))
        self._rules = {name: {limit: next(numbers) for limit in limits} for name, limits in rules.items()}
        self._unpacking = _Unpacking(crawler=crawler)
        self._eliminated: WeakSet[Request] = WeakSet()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        found = cls(crawler)
        crawler.signals.connect(found.headers_received, signals.headers_received)
        register_judge(crawler, found)
        return found

    def headers_received(self, headers: Headers, request: Request) -> None:
        if not self._is_fetched(request):
            return
        if not (self._accepts(request.url, headers) and self._accepts_charset(request.url, headers)):
            raise StopDownload(fail=False)

    def eliminates(self, request: Request, response: Response) -> bool:
        """Return whether an answer, compressed or not, has an eliminating text; damaged answers have none."""
        rules = self._rule(ELIMINATE, response.url) if self._is_fetched(request) else None
        if rules is None:
            return False
        try:
            page = self._unpacking.process_response(request, response)
        except Exception:  # noqa: BLE001 - reported when it is unpacked for its spider
            return False
        is_found = isinstance(page, TextResponse) and bool(rules.dropping_rule(partial(decoded_start, page)))
        if is_found:
            self._eliminated.add(request)
        return is_found

    def process_spider_input(self, response: Response) -> None:
        frontier, request = frontier_of(self._crawler), response.request
        if frontier is None or request is None or not self._is_fetched(request):
            return
        if not self._accepts(response.url, response.headers, response.body):
            rule = MEDIA_TYPE
        elif not self._accepts_charset(response.url, response.headers, response):
            rule = CHARSET
        elif request in self._eliminated or self.eliminates(request, response):
            rule = STRING
        else:
            return
        frontier.started.record_filtered(request, rule)
        self._stats_buffer.inc_value(f"bigcrawl/filtered/{rule}")
        raise PageFilteredError(response.url, rule)

    def process_spider_exception(self, response: Response, exception: Exception) -> list[object] | None:
        return [] if isinstance(exception, PageFilteredError) else None

    def _is_fetched(self, request: Request) -> bool:
        """Whether it is a page of the crawl: not robots.txt, a media pipeline's picture, or part of a page."""
        frontier = frontier_of(self._crawler)
        return frontier is not None and frontier.started.is_page(request)

    def _accepts(self, url: str, headers: Headers, body: bytes | None = None) -> bool:
        rules = self._rule(KINDS, url)
        if rules is None or _LOCATION in headers:
            return True
        told = type_told(dict.get(headers, _TYPE)) or (sniff_media_type(body) if body else "")
        return not told or rules.accepts_type(told)

    def _accepts_charset(self, url: str, headers: Headers, response: Response | None = None) -> bool:
        """Whether the declared charset is wanted; without one, the charset found by reading the HTML page."""
        rules = self._rule(CHARSETS, url)
        if rules is None or _LOCATION in headers:
            return True
        charset = http_content_type_encoding((headers.get(_TYPE) or b"").decode("latin-1"))
        if charset is None and isinstance(response, HtmlResponse):
            charset = charset_of(response)
        return charset is None or rules.accepts_charset(charset)

    @cached_property
    def _rule_book(self) -> RuleBook:
        frontier = frontier_of(self._crawler)
        assert frontier is not None
        assert frontier.node is not None, "it has fetched a page"
        crawl = frontier.node.crawl
        return RuleBook(self._rules, crawl.pld_of, crawl.pld_key, SITE_LIMITS)

    def _rule(self, limit: str, url: str) -> PageRules | None:
        try:
            canonical = canonicalize(url)
        except UrlError:
            return None
        found = self._rule_book.for_url(host_of(canonical), canonical).get(limit)
        return None if found is None else self._filters[found.value]
