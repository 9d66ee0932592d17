"""Handles a stop signal that comes while the crawl opens or closes, which Scrapy does not.

If the signal comes while the spider opens, Scrapy ends the process with components open, so an embedded server keeps
running. If it comes while the spider closes, the process ends halfway. With this extension, the crawl opens as far as
it must, and then closes completely. A second signal still ends the process at once.

Exit status 1 for a crawl that ended because of an error.

A crawl that cannot start is closed before it fetches anything, and the component that found the error logs it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import CloseSpider
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred

from bigcrawl.scheduler.adapter.engine_probe import LOOK_S, EngineProbe
from bigcrawl.scheduler.adapter.registry import has_failed

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

REASON = "shutdown"
OPEN_S = 10.0  # how long a component may take to open; the frontier gives up sooner


class WholeStop:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._probe = EngineProbe(crawler)
        self._reactor: Any = None  # zope's interfaces are not known to mypy
        self._trigger: Any = None
        self._closing: asyncio.Task[None] | None = None
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.engine_started, signals.engine_started)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)
        crawler.signals.connect(self.engine_stopped, signals.engine_stopped)
        if is_reactor_installed():
            from twisted.internet import reactor

            self._reactor = reactor
            self._trigger = self._reactor.addSystemEventTrigger("before", "shutdown", self._delay_reactor_stop)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self) -> None:
        if self._probe.is_stopped() and not has_failed(self._crawler):
            logger.info("stopped before the crawl was open, so nothing was fetched; the same command continues")
            raise CloseSpider(REASON)

    def engine_started(self) -> None:
        """Stop an engine that was told to stop just before it started, which Scrapy does not do."""
        if self._probe.is_over():
            return
        if not self._crawler.engine.running:
            asyncio.get_running_loop().call_later(LOOK_S, self.engine_started)
        elif self._probe.is_stopped() and not self._probe.is_closing():
            self._closing = asyncio.ensure_future(self._crawler.engine.stop_async())

    def spider_closed(self) -> None:
        self._release_reactor()

    async def engine_stopped(self) -> None:
        """Delay the crawl's end until the spider is closed; after a signal, Scrapy does not wait for it."""
        await self._probe.until_over()

    def _release_reactor(self) -> None:
        if not self._probe.is_over():
            asyncio.get_running_loop().call_later(LOOK_S, self._release_reactor)
        elif self._trigger is not None:
            self._reactor.removeSystemEventTrigger(self._trigger)
            self._trigger = None

    def _delay_reactor_stop(self) -> Deferred[None] | None:
        self._trigger = None
        if not self._probe.is_stopped() or self._probe.is_over():
            return None
        return Deferred.fromFuture(asyncio.ensure_future(self._wait_until_closed()))

    async def _wait_until_closed(self) -> None:
        now = asyncio.get_running_loop().time
        until = now() + OPEN_S
        # Scrapy ignores signals after the second one, which cannot stop a reactor that is stopping already.
        while not self._probe.is_over() and signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            if now() > until and not self._probe.is_closing():
                logger.warning("the crawl could not be opened in time, so the process ends without closing it")
                return
            await asyncio.sleep(LOOK_S)


class ExitStatus:
    """Makes Scrapy's command report a failure. Scrapy counts a crawler that ends without a spider as failed."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.mark_failure, signals.engine_stopped)
        crawler.signals.connect(self.mark_failure, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self) -> None:
        """Close a spider that cannot run; before all components are open, closing would raise errors."""
        if has_failed(self._crawler):
            raise CloseSpider("bigcrawl_cannot_start")

    def mark_failure(self) -> None:
        if has_failed(self._crawler):
            self._crawler.spider = None
