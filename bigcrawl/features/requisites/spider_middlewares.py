"""Offers the requisites of pages, style sheets and modules to the frontier, and keeps their answers from the spider.

A page's requisites are offered before its links, with its depth, at a priority of the highest front queue. Those of a
style sheet or a module follow when it was fetched, whether or not it was a requisite itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from scrapy.exceptions import IgnoreRequest

from bigcrawl.config import read_config
from bigcrawl.features.requisites.reading import requisites_of_module, requisites_of_page, requisites_of_sheet
from bigcrawl.features.requisites.settings import RequisiteConfig
from bigcrawl.links import PAGE_PART, Links
from bigcrawl.media_types import HTML, type_of, type_told
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.scheduler.queues.front_queues import URGENT
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.url.canonical import canonicalize, host_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.config import Config
    from bigcrawl.scheduler.adapter.frontier import Frontier

ORDER: Final = 12  # next to the one that passes links to the frontier, and before those that drop pages
STEPS_MAX: Final = 5
"""How many steps a requisite may be away from its page: style sheets that import others might go on for ever."""
_SHEET: Final = "text/css"
_SCRIPTS: Final = frozenset({"text/javascript", "application/javascript", "application/x-javascript"})


class PartFetchedError(IgnoreRequest):
    """A part of a page was fetched and stored, and is withheld from the spider."""


class RequisiteLinks:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._config = read_config(crawler.settings).feature_config(RequisiteConfig)
        self._stats_buffer = StatsBuffer(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_spider_input(self, response: Response) -> None:
        if _steps_of(response.request):
            raise PartFetchedError(f"{response.url} is part of a page")

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        await self._offer_requisites(response)
        async for output in result:
            yield output

    def process_spider_exception(self, response: Response, exception: Exception) -> AsyncIterator[Any] | None:
        return self.process_spider_output(response, _nothing()) if isinstance(exception, PartFetchedError) else None

    async def _offer_requisites(self, response: Response) -> None:
        frontier, request = frontier_of(self._crawler), response.request
        if frontier is None or request is None or not frontier.started.is_handed_out(request):
            return
        steps, told = _steps_of(request), response.headers.getlist("Content-Type")
        kind = type_told(told)
        if kind == _SHEET:
            found = requisites_of_sheet(response)
        elif kind in _SCRIPTS:
            found = requisites_of_module(response)
        elif not steps and type_of(told, response.body) in HTML:
            found = requisites_of_page(response)
        else:
            return
        if not found.urls:
            return
        within = found.urls if self._config.scope == "any" else self._within(found.urls, response.url, frontier)
        urls = within[: self._config.page_max] if steps < STEPS_MAX else []
        stats = self._stats_buffer
        stats.inc_value("bigcrawl/requisites/found", len(found.urls))
        stats.inc_value("bigcrawl/requisites/outside", len(found.urls) - len(within))
        stats.inc_value("bigcrawl/requisites/too-many", len(within) - len(urls))
        if not urls:
            return
        await frontier.flow.wait_for_room()
        links = Links(urls, canonical=True, priority=URGENT, meta={PAGE_PART: steps + 1})
        depth = int(response.meta.get("depth", 0))
        stats.inc_value("bigcrawl/requisites/sent", frontier.intake.offer_links(links, urls, depth, response.url))

    def _within(self, urls: list[str], page: str, frontier: Frontier) -> list[str]:
        """Return the URLs on the page's host, or on its pay-level domain."""
        host, pld_of = host_of(canonicalize(page, 1 << 20)), frontier.pld_of
        if self._config.scope == "host":
            return [url for url in urls if host_of(url) == host]
        return [url for url in urls if pld_of(host_of(url)) == pld_of(host)]


def _steps_of(request: Request | None) -> int:
    """Return the number of references from a page to this part of it; 0 for a page."""
    return 0 if request is None else int(request.meta.get(PAGE_PART, 0))


async def _nothing() -> AsyncIterator[Any]:
    for output in list[Any]():
        yield output


def middlewares_of(config: Config) -> Mapping[type, int]:
    return {RequisiteLinks: ORDER}
