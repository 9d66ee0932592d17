"""Fetches what sites announce by RSS and Atom, the newest first."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.links import LeftOut, Links
from bigcrawl.listings import ListReading
from bigcrawl.listings.feeds import feed_entries, feeds_of_page, is_feed
from bigcrawl.spiders.broad import BroadSpider, is_html
from bigcrawl.spiders.sitemap_reading import EntryJoiner, hinted_priority, hints_of, modified_s

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
        if response.status != 200:
            return
        if is_feed(response.body, hints_of(response)):
            async for output in self.parse_feed(response):
                yield output
        elif is_html(response):
            found = feeds_of_page(response.body[:PAGE_BYTES_MAX].decode("utf-8", "replace"))
            yield Links(found, base=response.url, callback="parse_feed", changefreq="always")

    async def parse_feed(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield a feed's entries, and their pages as links; nothing for any other response."""
        hints = hints_of(response)
        if response.status != 200 or not is_feed(response.body, hints):
            return
        join, now_s = EntryJoiner(response.url), time.time()
        reading = ListReading(feed_entries(response.body, FEED_ENTRIES_MAX, hints))
        for found in reading:
            await asyncio.sleep(0)
            joined = [(url, entry) for entry in found if (url := join(entry))]
            for url, entry in joined:
                yield {"url": url, "title": entry.title, "published": entry.published, "feed": response.url}
            times = {url: modified_s(entry.updated or entry.published, now_s) for url, entry in joined}
            modified = {url: at_s for url, at_s in times.items() if at_s is not None}
            links = Links([url for url, _ in joined], canonical=True, callback="parse_entry", modified=modified)
            for batch in links.by_priority([hinted_priority(entry.published, now_s) for _, entry in joined]):
                yield batch
        if reading.limit:
            yield Links((), base=response.url, left_out=LeftOut(limit=f"listing-{reading.limit}"))

    def parse_entry(self, response: Response, **kwargs: Any) -> Any:
        """Yield items from an entry's page. Subclasses override this; here the page is only stored."""
        return ()
