"""Feeds: what sites announce by RSS and Atom, the newest first."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.links import Links
from bigcrawl.listings.feeds import entries, feeds_of_page, is_feed
from bigcrawl.spiders.broad import BroadSpider, is_html
from bigcrawl.spiders.hints import hinted_priority, modified_s
from bigcrawl.url.canonical import Joiner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

FEED_ENTRIES_MAX: Final = 1_000
PAGE_BYTES_MAX: Final = 1 << 20  # in which a page names its feeds


class FeedsSpider(BroadSpider):
    """`scrapy crawl feeds -a seeds="https://a.example/feed.xml https://b.example/"`; yields each entry of a feed.

    A seed is a feed, or a page that names its feeds by `<link rel="alternate">`. The page of each entry is fetched,
    once and the newest first, and goes to `parse_entry`; its links are not followed. Of a feed, the first
    `FEED_ENTRIES_MAX` entries are read. All else is as in `BroadSpider`.
    """

    name = "feeds"

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Follow the entries of a feed, or the feeds of a page."""
        if response.status != 200:
            return
        if is_feed(response.body):
            async for output in self.parse_feed(response):
                yield output
        elif is_html(response):
            found = feeds_of_page(response.body[:PAGE_BYTES_MAX].decode("utf-8", "replace"))
            yield Links(found, base=response.url, callback="parse_feed", changefreq="always")

    async def parse_feed(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the entries of a feed, and their pages as links; nothing for anything else."""
        if response.status != 200 or not is_feed(response.body):
            return
        join, now_s = Joiner(response.url), time.time()
        for found in entries(response.body, FEED_ENTRIES_MAX):
            await asyncio.sleep(0)
            joined = [(url, entry) for entry in found if (url := join(entry.url))]
            for url, entry in joined:
                yield {"url": url, "title": entry.title, "published": entry.published, "feed": response.url}
            times = {url: modified_s(entry.updated or entry.published, now_s) for url, entry in joined}
            modified = {url: at_s for url, at_s in times.items() if at_s is not None}
            links = Links([url for url, _ in joined], canonical=True, callback="parse_entry", modified=modified)
            for batch in links.by_priority([hinted_priority(entry.published, now_s) for _, entry in joined]):
                yield batch

    def parse_entry(self, response: Response, **kwargs: Any) -> Any:
        """Make items of the page of an entry; here it is only stored. For a subclass to override."""
        return ()
