"""Makes links within the host of their page urgent, and counts their depth (step 1 of a URL's life).

Distinguishes links within a host from entries, which lead to a new host.

Source: UbiCrawler §3 (a host that is met is visited whole), §6 (the limit on its depth). Differs: pages beyond the
limit become entries, as with a limit of 0 all pages are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urljoin, urlsplit

from scrapy import Request, signals

from bigcrawl.config import read_config
from bigcrawl.features.whole_hosts.settings import WholeHostConfig
from bigcrawl.links import NOTHING_LEFT_OUT, Links
from bigcrawl.scheduler.queues.front_queues import URGENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.config import Config

DEPTH_KEY: Final = "bigcrawl_host_depth"
"""The key in `meta` of a page's links from the page by which its host was entered; entries have none."""


def depth_of_links(page_depth: int, depth_max: int) -> int:
    """Return the depth of a page's links within its host; 0 if they are entries."""
    return page_depth + 1 if page_depth < depth_max else 0


def split(urls: Sequence[str], is_inside: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    inside: list[str] = []
    entries: list[str] = []
    for url in urls:
        (inside if is_inside(url) else entries).append(url)
    return inside, entries


def raised_priority(priority: int) -> int:
    return URGENT + max(priority, 0)


ORDER: Final = 15  # next to the one that passes links to the frontier


class WholeHostLinks:
    def __init__(self, depth_max: int) -> None:
        self._depth_max = depth_max

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        found = cls(read_config(crawler.settings).feature_config(WholeHostConfig).depth)
        crawler.signals.connect(found.request_scheduled, signals.request_scheduled)
        return found

    def request_scheduled(self, request: Request) -> None:
        """Turn a redirect to another host into an entry; its meta and priority are those of a link within a host."""
        meta = request.meta
        if DEPTH_KEY in meta and _came_from_elsewhere(meta, _host_of(request.url)):
            del meta[DEPTH_KEY]
            request.priority = max(request.priority - URGENT, 0)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        host = _host_of(response.url)
        depth = depth_of_links(_depth_of(response, host), self._depth_max)
        async for output in result:
            if isinstance(output, Links):
                for links in _parts(output, response.url, host, depth):
                    yield links
            else:
                if isinstance(output, Request):
                    output.meta.pop(DEPTH_KEY, None)  # copied from the page's own
                    if depth and _host_of(output.url) == host:
                        output.meta[DEPTH_KEY] = depth
                        output.priority = raised_priority(output.priority)
                yield output


def _parts(links: Links, page: str, host: str, depth: int) -> Iterator[Links]:
    if links.meta and DEPTH_KEY in links.meta:
        links = replace(links, meta={key: value for key, value in links.meta.items() if key != DEPTH_KEY})
    if not depth:
        yield links
        return
    base = "" if links.canonical else links.base or page

    def is_inside(url: str) -> bool:
        return _host_of(url, base) == host

    urls, entries = split(links.urls, is_inside)
    nofollow, closed_entries = split(links.nofollow, is_inside)
    meta = {**(links.meta or {}), DEPTH_KEY: depth}
    # The first batch has the data about the whole page.
    yield replace(
        links, urls=urls, nofollow=nofollow, meta=meta, priority=raised_priority(links.priority), anchors=(), kinds=()
    )
    if entries or closed_entries:
        nothing: dict[str, Any] = {"metas": (), "left_out": NOTHING_LEFT_OUT, "modified": None}
        yield replace(links, urls=entries, nofollow=closed_entries, anchors=(), kinds=(), **nothing)


def _depth_of(response: Response, host: str) -> int:
    """Return a page's depth in its host; 0 if a redirect led into the host."""
    meta = response.meta
    return 0 if _came_from_elsewhere(meta, host) else int(meta.get(DEPTH_KEY, 0))


def _came_from_elsewhere(meta: Mapping[str, Any], host: str) -> bool:
    return any(_host_of(url) != host for url in meta.get("redirect_urls") or ())


def _host_of(url: str, base: str = "") -> str:
    try:
        return urlsplit(urljoin(base, url) if base else url).hostname or ""
    except ValueError:
        return ""


def middlewares_of(_config: Config) -> Mapping[type, int]:
    return {WholeHostLinks: ORDER}
