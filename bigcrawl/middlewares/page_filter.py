"""Drops pages by media type, reserved strings and language, and counts each by the rule against it.

The body of an unwanted media type is not downloaded. Pages dropped for their text are stored, but the spider does not
get them; an errback does, as for an error status.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotConfigured, StopDownload
from scrapy.http import Headers, Response, TextResponse

from bigcrawl.config import read_config
from bigcrawl.links import decoded_start
from bigcrawl.media_types import sniff_media_type, type_told
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.scheduler.records.outcomes import MEDIA_TYPE
from bigcrawl.scheduler.rules.page_rules import PageRules
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_TYPE, _LOCATION = b"Content-Type", b"Location"


class PageFilteredError(IgnoreRequest):
    def __init__(self, url: str, rule: str) -> None:
        super().__init__(f"{url} is dropped by the filter {rule}")
        self.rule = rule


class PageFilter:
    def __init__(self, crawler: Crawler, rules: PageRules) -> None:
        self._crawler = crawler
        self._rules = rules
        self._stats_buffer = StatsBuffer(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        rules = PageRules(read_config(crawler.settings).filters)
        if not rules:
            raise NotConfigured("no BIGCRAWL_FILTER_ setting drops pages")
        found = cls(crawler, rules)
        crawler.signals.connect(found.headers_received, signals.headers_received)
        return found

    def headers_received(self, headers: Headers, request: Request) -> None:
        frontier = frontier_of(self._crawler)
        if frontier is None or not frontier.started.is_page(request):
            return  # robots.txt, a picture for a media pipeline or of a page
        if not self._is_wanted_type(headers):
            raise StopDownload(fail=False)

    def process_spider_input(self, response: Response) -> None:
        frontier, request = frontier_of(self._crawler), response.request
        if frontier is None or request is None or not frontier.started.is_page(request):
            return
        if not self._is_wanted_type(response.headers, response.body):
            rule = MEDIA_TYPE
        elif isinstance(response, TextResponse):
            rule = self._rules.dropping_rule(partial(decoded_start, response))
        else:
            rule = ""
        if rule:
            frontier.started.record_filtered(request, rule)
            self.count_filtered_page(rule)
            raise PageFilteredError(response.url, rule)

    def process_spider_exception(self, response: Response, exception: Exception) -> list[object] | None:
        return [] if isinstance(exception, PageFilteredError) else None

    def count_filtered_page(self, rule: str) -> None:
        self._stats_buffer.inc_value(f"bigcrawl/filtered/{rule}")

    def _is_wanted_type(self, headers: Headers, body: bytes | None = None) -> bool:
        told = type_told(dict.get(headers, _TYPE)) or (sniff_media_type(body) if body else "")
        return not told or _LOCATION in headers or self._rules.accepts_type(told)
