"""A broad crawl: every page reachable from the seeds, fetched once and stored as received."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import TextResponse
from scrapy.settings import Settings

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links, header_links
from bigcrawl.media_types import HTML, type_of
from bigcrawl.spiders.seeds import Seeds
from bigcrawl.spiders.sitemap_reading import sitemap_links
from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from os import PathLike
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class BroadSpider(scrapy.Spider):
    """`scrapy crawl broad -a seeds="http://a.example/ http://b.example/"`, or `-a seeds=FILE`, one URL per line.

    Pages of any status are kept, and links of HTML pages are followed wherever they lead, or within a scope: with
    `-a scope=host` on the hosts of the seeds, with `pld` on their pay-level domains, with `prefix` below their
    directories, with `list` to what `-a scope_list=FILE` names. Empty lines and lines that
    begin with `#` are skipped; other lines that are not URLs are logged and skipped. `-a allowed_domains="a.example
    b.example"` limits the crawl to these and their subdomains. `-a sitemaps=1` also reads the sitemaps that
    robots.txt files name, and follows them.

    Features that a broad crawl does not need are off, because they cost time per page: cookies, Scrapy's counts of
    requests and responses (bigcrawl has its own), and following meta refreshes in the downloader (here they are
    links). A subclass can turn them on again. Referer headers stay on: they cost 1 µs per page, and without them
    Scrapy warns at each start.
    """

    name = "broad"
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        "HTTPERROR_ALLOW_ALL": True,
        "COOKIES_ENABLED": False,
        "DOWNLOADER_STATS": False,
        "METAREFRESH_ENABLED": False,
    }

    wrong_arguments: ConfigError | None = None
    """What is wrong with its arguments; on every node, the crawl ends with it before anything is fetched."""

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
        if str(sitemaps).lower() in ("1", "true", "yes", "on"):
            self.parse_sitemap_urls = self.follow_sitemaps  # only a spider with this method is given sitemaps
        if allowed_domains:
            self.allowed_domains = (
                allowed_domains.split() if isinstance(allowed_domains, str) else list(allowed_domains)
            )
        self._seeds = Seeds(seeds)
        # Part of the identity of the start requests: an edited file is read again, wherever a copy of it lies.
        self.seeds, self.seeds_version = self._seeds.text, self._seeds.version
        self._lacks_seeds = self._seeds.is_missing

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Make the spider. Its arguments about the scope become settings, which all nodes of the crawl share."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name, value in spider._scope_settings.items():
            if value:
                crawler.settings.set(name, value, "cmdline")
        return spider

    @property
    def lacks_start_requests(self) -> bool:
        """Whether the file of the seeds is not here. Then this node joins a crawl whose seeds another node has read."""
        return self._lacks_seeds

    async def start(self) -> AsyncIterator[Any]:
        """Yield the seeds in batches, however many there are.

        Raises:
            ConfigError: no seeds, a file that cannot be read, or another wrong argument.
        """
        if self.wrong_arguments is not None:
            raise self.wrong_arguments
        found = 0
        for batch in self._seeds.batches():
            found += len(batch)
            yield Links(batch, canonical=True)
        if not found:
            raise ConfigError("there are no seeds: -a seeds=FILE, or -a seeds='http://a.example/ http://b.example/'")

    def scope_seeds(self) -> Iterator[str]:
        """Yield the seeds that can be crawled, of which the scope is made."""
        for line in self._seeds.lines():
            with suppress(UrlError):
                yield canonicalize(line)

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Follow the links of an HTML page, a `Refresh` header, and a sitemap among the seeds if it reads those."""
        if isinstance(response, TextResponse) and is_html(response):
            yield Links.from_page(response)
            return
        if urls := header_links(response):
            yield Links(urls, canonical=True)
        if hasattr(self, "parse_sitemap_urls") and is_seed(response):
            async for links in self.parse_sitemap(response):
                yield links

    def follow_sitemaps(self, urls: list[str], robots_url: str) -> Links:
        """Queue the sitemaps of a robots.txt."""
        return Links(urls, canonical=True, callback="parse_sitemap", changefreq="always")

    async def parse_sitemap(self, response: Response) -> AsyncIterator[Any]:
        """Follow the pages or sitemaps that a sitemap lists, gzipped or not. Anything else is ignored."""
        crawler = getattr(self, "crawler", None)
        limits = read_config(crawler.settings if crawler else Settings()).limits
        async for links in sitemap_links(response, limits.decompression_ratio_max, "parse_sitemap"):
            yield links


def is_seed(response: Response) -> bool:
    """Whether no link led to it. Other pages are not unpacked to see whether they are sitemaps: archives are large."""
    return response.request is None or not response.meta.get("depth")


def is_html(response: Response) -> bool:
    """Whether browsers show it as HTML: by its headers, or by its first bytes if they tell no type."""
    return type_of(dict.get(response.headers, b"Content-Type"), response.body) in HTML
