"""Scrapy's engine as the node sees it, and the outputs of pages and items."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy import signals

from bigcrawl.json_text import read_json
from bigcrawl.logs.tail import LogRow, LogTail
from bigcrawl.redisdb.scripts import NodesMade
from bigcrawl.scheduler.handout.engine_side import EngineSide
from bigcrawl.scheduler.handout.recent import item_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy.crawler import Crawler

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.adapter.joining import CrawlJoin
    from bigcrawl.scheduler.adapter.scrapys_names import ScrapysStats
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held_urls import Feeds, PageStorage
    from bigcrawl.scheduler.rules.callbacks import Callbacks

logger = logging.getLogger(__name__)

ITEMS_MAX: Final = 20
WATCHED_ITEMS: Final = 10  # between two heartbeats
FIGURES_MAX: Final = 8


class Outputs(NamedTuple):
    """The storage of pages and the feeds of items; None for one that the crawler lacks."""

    storage: PageStorage | None = None
    feeds: Feeds | None = None

    def take_more(self) -> bool:
        """Whether both accept more. If not, the node takes no more URLs."""
        if self.feeds is not None and self.feeds.is_stuck:
            return False
        return self.storage is None or self.storage.is_flushed()

    def make_safe(self) -> bool:
        """Flush the items so far. Return False if no URL may be acknowledged yet.

        Pages become safe by themselves; `storage.safe_pages` says which are.
        """
        return (self.storage is None or self.storage.is_flushed()) and (self.feeds is None or self.feeds.flush())


class SampledItems:
    """Texts of a few scraped items. The signal costs each item a task, so it is connected only for these."""

    def __init__(self, crawler: Crawler) -> None:
        self._signals = crawler.signals
        self._left = 0
        self._is_connected = False
        self.last: deque[tuple[float, str]] = deque(maxlen=ITEMS_MAX)

    def sample(self, items: int) -> None:
        self._left = items
        if not self._is_connected:
            self._signals.connect(self._record_item, signals.item_scraped)
            self._is_connected = True

    def close(self) -> None:
        self._left = 0
        self._disconnect()

    def _record_item(self, item: Any) -> None:
        if self._left > 0:
            self._left -= 1
            self.last.append((time.time(), item_text(item)))
            if not self._left:
                asyncio.get_running_loop().call_soon(self._disconnect)  # the signal goes through its receivers now

    def _disconnect(self) -> None:
        if self._is_connected and not self._left:
            self._signals.disconnect(self._record_item, signals.item_scraped)
            self._is_connected = False


class ScrapyEngine(EngineSide):
    def __init__(
        self,
        crawler: Crawler,
        probe: EngineProbe,
        started: StartedRequests,
        shutdown: Shutdown,
        joining: CrawlJoin,
        names: ScrapysStats,
    ) -> None:
        self._crawler = crawler
        self._probe = probe
        self._started = started
        self._shutdown = shutdown
        self._joining = joining
        self._names = names
        self._outputs = Outputs()
        self._node: Node | None = None
        self._log = LogTail()
        self._items = SampledItems(crawler)
        self._failed: set[str] = set()

    def open(self, outputs: Outputs, callbacks: Callbacks) -> None:
        self._outputs = outputs
        self.storage = outputs.storage
        self.callbacks = callbacks
        logging.root.addHandler(self._log)

    def close(self) -> None:
        logging.root.removeHandler(self._log)
        self._items.close()

    def attach(self, node: Node) -> None:
        self._node = node

    def poll_ended(self) -> None:
        if self._node is not None:
            self._started.end_done(self._node)
            self._shutdown.check(self._node)
            self._names.update_if_due()

    def may_take(self) -> bool:
        return not (self._shutdown.has_failed or self._probe.is_closing()) and self._outputs.take_more()

    def may_acknowledge(self) -> bool:
        return self._outputs.make_safe()

    def is_paused(self) -> bool:
        return self._probe.is_paused()

    def wake(self) -> None:
        self._probe.wake()

    def break_off(self) -> None:
        self._shutdown.break_off()

    def sent_bytes(self) -> int:
        assert self._crawler.stats is not None
        stats = "bigcrawl/requests/bytes", "downloader/request_bytes"
        return max(int(self._crawler.stats.get_value(stat, 0)) for stat in stats)

    def announce(self, event: str, facts: Mapping[str, Any]) -> None:
        from bigcrawl.scheduler.signals import BY_NAME

        self._crawler.signals.send_catch_log(BY_NAME[event], spider=self._crawler.spider, **{event: facts})

    def made(self) -> NodesMade:
        assert self._crawler.stats is not None
        items = self._crawler.stats.get_value("item_scraped_count", 0)  # Scrapy counts them anyway
        return NodesMade(int(items), self._log.warnings, self._log.errors)

    def figures(self) -> Mapping[str, Any]:
        found = self._said_by_spider("crawl_figures")
        return dict(islice(found.items(), FIGURES_MAX)) if isinstance(found, dict) else {}

    def summary(self) -> Any:
        return self._said_by_spider("crawl_summary")

    def _said_by_spider(self, name: str) -> Any:
        """Return an attribute of the spider, or what its method returns; None if it fails, which is logged once."""
        said = getattr(self._crawler.spider, name, None)
        if said is None or name in self._failed:
            return None
        try:
            return read_json(json.dumps(said() if callable(said) else said))
        except Exception:
            self._failed.add(name)
            logger.exception("the spider's %(name)s failed, and is not asked for again", {"name": name})
            return None

    def log_rows(self) -> Sequence[LogRow]:
        return self._log.rows()

    def sample_items(self, *, is_watched: bool) -> None:
        self._items.sample(WATCHED_ITEMS if is_watched else 1)

    def last_items(self) -> Sequence[tuple[float, str]]:
        return list(self._items.last)[::-1]

    def record_limit(self, fetches: int) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.set_value("bigcrawl/fetches/limit", fetches)

    def revive_server(self) -> None:
        self._joining.revive_server()

    def on_fatal(self, error: BigcrawlError) -> None:
        self._shutdown.fail(error)
