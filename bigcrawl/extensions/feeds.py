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

import csv
import logging
import os
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.extensions.feedexport import BlockingFeedStorage, FileFeedStorage, FTPFeedStorage, StdoutFeedStorage
from scrapy.extensions.feedexport import FeedExporter as ScrapyFeedExporter

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.scheduler.adapter.registry import frontier_of, register_feeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
                    keep_earlier_items(slot, alone=frontier.node.membership.is_alone)
                else:
                    empty_feed_file(slot)
            except ConfigError as error:
                frontier.fail(error)
            except OSError as error:
                frontier.fail(ConfigError(f"feed {slot.uri} cannot be written: {error}"))
        return slot

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Export an item. If the disk is full, keep item and page until there is room."""
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


_WRITTEN_AT_ONCE = (FileFeedStorage, StdoutFeedStorage)
_NAMED_BY_TIME = re.compile(r"%\((batch_)?time\)")


def durability_gap(storage: type, exporter: type, options: Mapping[str, Any]) -> str:
    """Return what a feed loses at kill -9, as text that follows its name; empty if nothing."""
    from scrapy import exporters  # and pydantic with them, which a crawl without feeds does not need

    if issubclass(storage, BlockingFeedStorage):
        return "is uploaded when the crawl stops: kill -9 loses all its items since the start"
    if not issubclass(storage, _WRITTEN_AT_ONCE):
        return f"is kept by {storage.__name__}, and whether its items outlive kill -9 is not known"
    if options.get("postprocessing"):
        return "is post-processed: kill -9 loses items that wait there, and later items might be unreadable"
    if issubclass(exporter, (exporters.JsonItemExporter, exporters.XmlItemExporter)):
        return "has all its items after kill -9, but is no valid document after that or a resume; jsonlines or csv is"
    item_by_item = (exporters.MarshalItemExporter, exporters.PickleItemExporter, exporters.PprintItemExporter)
    if not issubclass(exporter, (exporters.JsonLinesItemExporter, exporters.CsvItemExporter, *item_by_item)):
        return f"is written by {exporter.__name__}, and whether its items outlive kill -9 is not known"
    return ""


def empty_feed_file(slot: FeedSlot) -> None:
    """Empty the file of a feed with `overwrite`, at once: later, another node might already be writing."""
    storage = slot.storage
    if isinstance(storage, FileFeedStorage) and "w" in storage.write_mode:
        path = Path(storage.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        storage.write_mode = "ab"


def keep_earlier_items(slot: FeedSlot, *, alone: bool) -> None:
    """Make a new feed keep earlier items; raise ConfigError if its format allows only replacing the whole file."""
    storage = slot.storage
    if isinstance(storage, FileFeedStorage):
        path, replaces = Path(storage.path), "w" in storage.write_mode
        storage.write_mode = "ab"
        if path.is_file() and path.stat().st_size:
            _append_to_feed(slot, path, replaces=replaces, alone=alone)
    elif isinstance(storage, BlockingFeedStorage):
        slot.store_empty = False
        if isinstance(storage, FTPFeedStorage):
            storage.overwrite = False
        elif not (_NAMED_BY_TIME.search(slot.uri_template) or slot.feed_options["uri_params"]):
            raise ConfigError(
                f"feed {slot.uri} would replace the items of the crawl's earlier runs: put %(time)s into its name, "
                f"or start the crawl from scratch with BIGCRAWL_FRESH=1"
            )


def _append_to_feed(slot: FeedSlot, path: Path, *, replaces: bool, alone: bool) -> None:
    slot.store_empty = False  # in some formats even an empty part has a header and a footer
    if replaces:
        logger.warning(
            "feed %(uri)s is not emptied, because the crawl is resumed: items are appended; BIGCRAWL_FRESH=1 starts "
            "both from scratch",
            {"uri": slot.uri},
        )
    from scrapy.exporters import CsvItemExporter, JsonLinesItemExporter

    exporter = slot.exporters[slot.format]
    if "postprocessing" in slot.feed_options or not issubclass(exporter, (JsonLinesItemExporter, CsvItemExporter)):
        return
    is_csv = issubclass(exporter, CsvItemExporter)
    if alone and (cut := cut_torn_line(path, quoted=is_csv)):
        logger.info(
            "feed %(uri)s ended within an item: its last %(cut)d bytes are removed, and the item's page is "
            "fetched again",
            {"uri": slot.uri, "cut": cut},
        )
    if is_csv and path.stat().st_size:
        _keep_columns(slot, path)


def cut_torn_line(path: Path, *, quoted: bool) -> int:
    """Truncate a file to its last complete line; return how many bytes were cut off. `quoted` means CSV."""
    with path.open("rb+") as file:
        size = file.seek(-1, os.SEEK_END) + 1
        if file.read(1) == b"\n":
            return 0
        file.seek(0)
        end = at = quotes = 0
        for line in file:
            at += len(line)
            quotes += line.count(b'"') if quoted else 0
            if line.endswith(b"\n") and quotes % 2 == 0:
                end = at
        file.truncate(end)
    return size - end


def _keep_columns(slot: FeedSlot, path: Path) -> None:
    """Omit the header, which the file has. Keep the file's columns, unless the feed sets its own."""
    options = slot.feed_options
    if options["item_export_kwargs"]:  # the project's own CSV format
        return
    fields = options["fields"]
    if fields is None:
        with path.open(newline="", encoding=options["encoding"] or "utf-8") as file:
            fields = next(csv.reader(file))
    slot.feed_options = {**options, "fields": fields, "item_export_kwargs": {"include_headers_line": False}}
