"""Scrapy's engine as the node sees it, and the outputs of pages and items."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.handout.engine_side import EngineSide

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.adapter.joining import CrawlJoin
    from bigcrawl.scheduler.adapter.scrapys_names import ScrapysStats
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.page_storage import Feeds, PageStorage
    from bigcrawl.scheduler.rules.callbacks import Callbacks


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

    def open(self, outputs: Outputs, callbacks: Callbacks) -> None:
        self._outputs = outputs
        self.storage = outputs.storage
        self.callbacks = callbacks

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
        return int(self._crawler.stats.get_value("downloader/request_bytes", 0))

    def record_limit(self, fetches: int) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.set_value("bigcrawl/fetches/limit", fetches)

    def revive_server(self) -> None:
        self._joining.revive_server()

    def on_fatal(self, error: BigcrawlError) -> None:
        self._shutdown.fail(error)
