"""A broad crawl: every page reachable from the seeds, fetched once and stored as received."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import TextResponse
from scrapy.settings import Settings

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import LINK_ATTRIBUTES, Links, header_links
from bigcrawl.media_types import HTML, type_of
from bigcrawl.spiders.seeds import Seeds, seed_url
from bigcrawl.spiders.sitemap_reading import may_be_sitemap, sitemap_links
from bigcrawl.url.canonical import UrlError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator
    from os import PathLike
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.config import Config


class BroadSpider(scrapy.Spider):
    """`scrapy crawl broad -a seeds="http://a.example/ http://b.example/"`, or `-a seeds=FILE`, one URL per line.

    Pages of any status are kept, and links of HTML pages are followed everywhere, or within a scope: with `-a
    scope=host` on the hosts of the seeds, with `pld` on their pay-level domains, with `prefix` below their directories,
    with `list` within the list of `-a scope_list=FILE`. Empty lines and lines that begin with `#` are skipped; other
    lines that are not URLs are logged and skipped. `-a allowed_domains="a.example b.example"` limits the crawl to these
    and their subdomains. `-a sitemaps=1` also follows the sitemaps that robots.txt files name.

    Features that cost time per page without use to a broad crawl are off: cookies, Scrapy's counts of requests and
    responses (bigcrawl has its own), and following meta refreshes in the downloader (here they are links). A subclass
    can turn them on again. Referer headers stay on: without them Scrapy warns at each start. Pages that cannot be
    fetched are logged at DEBUG.
    """

    name = "broad"
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        "HTTPERROR_ALLOW_ALL": True,
        "COOKIES_ENABLED": False,
        "DOWNLOADER_STATS": False,
        "METAREFRESH_ENABLED": False,
        "RETRY_GIVE_UP_LOG_LEVEL": "DEBUG",
    }

    changeable_arguments: Collection[str] = ("seeds", "allowed_domains", "sitemaps", "scope", "scope_list")
    """Arguments that add seeds or move limits: an unfinished crawl continues when they change."""

    sitemap_alternate_links: bool | str = False
    """Whether to follow the alternates in other languages that sitemaps name, as Scrapy's attribute says."""

    wrong_arguments: ConfigError | None = None
    """What is wrong with the arguments; then every node ends the crawl before anything is fetched."""

    def __init__(
        self,
        seeds: str | PathLike[str] | Iterable[str] = "",
        allowed_domains: str | Iterable[str] = "",
        sitemaps: str | bool = "",
        scope: str = "",
        scope_list: str | Iterable[str] = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._scope_settings = {"BIGCRAWL_SCOPE": scope, "BIGCRAWL_SCOPE_LIST": scope_list}
        if _is_on(sitemaps):
            self.parse_sitemap_urls = self.follow_sitemaps  # only a spider with this method is given sitemaps
        if allowed_domains:
            self.allowed_domains = (
                allowed_domains.split() if isinstance(allowed_domains, str) else list(allowed_domains)
            )
        self._seeds = Seeds(seeds)
        # Part of the identity of the start requests: an edited file is read again, and a copy is not.
        self.seeds, self.seeds_version = self._seeds.text, self._seeds.version
        self._lacks_seeds = self._seeds.is_missing

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name, value in spider._scope_settings.items():
            if value:
                crawler.settings.set(name, value, "cmdline")
        return spider

    @property
    def lacks_start_requests(self) -> bool:
        """Whether the file of seeds is missing here, so that this node joins a crawl that another node started."""
        return self._lacks_seeds

    async def start(self) -> AsyncIterator[Any]:
        """Yield the seeds in batches of bounded size.

        Raises:
            ConfigError: no seeds, a file that cannot be read, or another wrong argument.
        """
        if self.wrong_arguments is not None:
            raise self.wrong_arguments
        found = 0
        for batch in self._seeds.url_batches():
            found += len(batch)
            yield Links(batch, canonical=True)
        if not found:
            raise ConfigError(
                "there are no seeds: give -a seeds=FILE, or -a seeds='http://a.example/ http://b.example/'"
            )

    def scope_seeds(self) -> Iterator[str]:
        for line in self._seeds.read_lines():
            with suppress(UrlError):
                yield seed_url(line)

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Follow the links of an HTML page and a `Refresh` header; if so configured, also a sitemap among the seeds."""
        reads_sitemap = hasattr(self, "parse_sitemap_urls") and is_seed(response) and may_be_sitemap(response)
        if not reads_sitemap and isinstance(response, TextResponse) and is_html(response):
            if not self._followed_elements:
                yield Links.from_page(response)
            else:
                tags = (*LINK_ATTRIBUTES, *self._followed_elements)
                for links in Links.from_page(response, tags=tags).by_kind():
                    yield links
            return
        if urls := header_links(response):
            yield Links(urls, canonical=True)
        if reads_sitemap:
            async for links in self.parse_sitemap(response):
                yield links

    def _config(self) -> Config:
        crawler = getattr(self, "crawler", None)
        return read_config(crawler.settings if crawler else Settings())

    @cached_property
    def _followed_elements(self) -> tuple[str, ...]:
        return self._config().filters.elements

    def follow_sitemaps(self, urls: list[str], robots_url: str) -> Links:
        return Links(urls, canonical=True, callback="parse_sitemap", changefreq="always")

    async def parse_sitemap(self, response: Response) -> AsyncIterator[Any]:
        """Follow the pages or sitemaps that a sitemap lists, gzipped or not. Anything else is ignored."""
        limits = self._config().limits
        follows_alternates = _is_on(self.sitemap_alternate_links)
        async for links in sitemap_links(
            response, limits.decompression_ratio_max, "parse_sitemap", follows_alternates=follows_alternates
        ):
            yield links


def _is_on(given: bool | str) -> bool:
    return str(given).lower() in ("1", "true", "yes", "on")


def is_seed(response: Response) -> bool:
    """Return whether no link led to a page. Only seeds are decompressed to look for sitemaps, as archives are large."""
    return response.request is None or not response.meta.get("depth")


def is_html(response: Response) -> bool:
    """Return whether browsers show a response as HTML, by its headers, or if they name no type, its first bytes."""
    return type_of(dict.get(response.headers, b"Content-Type"), response.body) in HTML
