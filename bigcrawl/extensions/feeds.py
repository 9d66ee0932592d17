"""Feeds whose items survive kill -9: a page counts as fetched once the kernel has its items.

Scrapy buffers items. So `flush` is called before finished pages are acknowledged, about ten times a second.
docs/items.md says which feeds keep their items.

When the disk is full:

| state | entered when | meanwhile |
|---|---|---|
| flushed | the crawl begins; the last waiting item is written | items are exported as they come |
| stuck | a write fails, which is logged once | nothing is fetched or acknowledged; each pump retries |

A pipe whose reader has gone ends the crawl, because it will never take more.

A resumed crawl appends, even with `-O`: see docs/decisions/0051.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy.extensions.feedexport import FeedExporter as ScrapyFeedExporter

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.extensions.feed_files import durability_gap, empty_feed_file, go_on
from bigcrawl.scheduler.adapter.registry import frontier_of, register_feeds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot

logger = logging.getLogger(__name__)


class FeedExporter(ScrapyFeedExporter):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._waiting: deque[tuple[Any, Spider]] = deque()
        self._has_unflushed = False
        self._is_stuck = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        exporter = super().from_crawler(crawler)
        register_feeds(crawler, exporter)
        return exporter

    def open_spider(self, spider: Spider) -> None:
        """Open the feeds, unless the crawl cannot start, so that none is emptied for nothing."""
        frontier = frontier_of(self.crawler)
        if frontier is not None and not frontier.is_open:
            return
        super().open_spider(spider)
        if frontier is None or frontier.node is None:
            return
        for slot in self.slots:
            if problem := durability_gap(type(slot.storage), self.exporters[slot.format], slot.feed_options):
                logger.warning(
                    "feed %(uri)s %(problem)s; see docs/items.md", {"uri": slot.uri_template, "problem": problem}
                )

    def _start_new_batch(self, *args: Any, **kwargs: Any) -> FeedSlot:
        slot = super()._start_new_batch(*args, **kwargs)
        frontier = frontier_of(self.crawler)
        if frontier is not None and frontier.node is not None:
            try:
                if frontier.is_resumed:
                    go_on(slot, alone=frontier.node.membership.is_alone)
                else:
                    empty_feed_file(slot)
            except ConfigError as error:
                frontier.fail(error)
            except OSError as error:
                frontier.fail(ConfigError(f"feed {slot.uri} cannot be written: {error}"))
        return slot

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Export an item. If the disk is full, item and page wait."""
        self._has_unflushed = True
        if self._waiting:
            self._waiting.append((item, spider))
            return
        try:
            self._export_item(item, spider)
        except OSError as error:
            self._waiting.append((item, spider))
            self._record_stuck(error, self.slots)

    def _export_item(self, item: Any, spider: Spider) -> None:
        before = self.slots
        super().item_scraped(item, spider)
        for slot in before:
            if slot not in self.slots and slot.file is not None:  # a full batch, about to be closed
                slot.file.flush()

    @property
    def is_stuck(self) -> bool:
        """Whether a feed cannot be written. Meanwhile no page may be fetched."""
        return self._is_stuck

    def flush(self) -> bool:
        """Write all exported items to the kernel. Return False if the disk is full: then acknowledge nothing."""
        if not self._has_unflushed:
            return True
        try:
            while self._waiting:
                self._export_item(*self._waiting[0])
                self._waiting.popleft()
            for slot in self.slots:
                if slot.file is not None:
                    slot.file.flush()
        except OSError as error:
            self._record_stuck(error, self.slots)
            return False
        self._has_unflushed = False
        if self._is_stuck:
            self._is_stuck = False
            logger.info("the feeds have room again; the crawl continues")
        return True

    async def close_spider(self, spider: Spider) -> None:
        """Close the feeds. Pages whose items could not be written will be fetched again."""
        if not self.flush() and self._waiting:
            logger.error(
                "%(count)d items found no room in the feeds; their pages were not acknowledged and are fetched again",
                {"count": len(self._waiting)},
            )
        await super().close_spider(spider)

    def _record_stuck(self, error: OSError, slots: Sequence[FeedSlot]) -> None:
        if self._is_stuck:
            return
        self._is_stuck = True
        feeds, frontier = ", ".join(slot.uri for slot in slots), frontier_of(self.crawler)
        if isinstance(error, BrokenPipeError) and frontier is not None:
            frontier.fail(BigcrawlError(f"nothing reads the items any more ({feeds}); the same command continues"))
            return
        logger.error(
            "a feed cannot be written (%(feeds)s): %(error)s; make room there, the crawl waits until it can",
            {"feeds": feeds, "error": error},
        )
