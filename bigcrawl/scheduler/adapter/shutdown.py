"""How a crawl ends in this process: by a signal, by the limit on pages, or by an error that waiting does not solve."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.loop import together

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.node.node import Node

logger = logging.getLogger(__name__)

LOOK_OUT_S = 0.25
LOOK_OUT_IDLE_S = 1.0  # while nothing is fetched: nothing has to be hurried, and Scrapy closes the scheduler at once
CLOSE_MS = 8_000  # from the stop signal on; two of ten seconds are for Scrapy's own closing, and a busy machine
CLOSE_MS_MIN = 500  # a healthy server ends in a tenth of that
SERVER_MS = 1_000  # of CLOSE_MS, for the embedded server


class Shutdown:
    """Notices that the spider closes, and makes the node end in time; `record_failure` gets an error that ends it."""

    def __init__(self, crawler: Crawler, probe: EngineProbe, grace_ms: int, record_failure: Callable[[], None]) -> None:
        self._crawler = crawler
        self._is_stopped = probe.is_stopped
        self._grace_ms = grace_ms
        self._record_failure = record_failure
        self._node: Node | None = None
        self._abort_at: float | None = None
        self._hurried_at: float | None = None
        self._is_over = False
        self._closing: asyncio.Future[None] | None = None
        self.has_failed = False
        self.is_closing = probe.is_closing
        self._is_open = probe.is_open

    def attach(self, node: Node) -> None:
        self._node = node

    @property
    def has_begun(self) -> bool:
        return self.has_failed or self.is_closing()

    def look_out(self) -> None:
        """Check often whether the spider closes, even while the pump waits for a Redis that hangs."""
        if self._is_over:
            return
        loop, is_idle = asyncio.get_running_loop(), self._node is not None and not self._node.handout.fetches.under_way
        wait_s = together(loop.time(), LOOK_OUT_IDLE_S) if is_idle else LOOK_OUT_S
        loop.call_later(wait_s, self.look_out)
        self.left_ms()  # the time counts from the signal on
        if self.is_closing():
            self._return_unstarted()

    def check(self, node: Node) -> None:
        """Check whether the spider closes, enough pages are fetched, the node is drained, or the crawl is closed."""
        if self.is_closing():
            self._return_unstarted()
        elif node.progress.has_reached_max and not node.workload.is_stopping and self._is_open():
            node.workload.stop()
            logger.info("BIGCRAWL_MAX_PAGES reached: %(pages)d pages", {"pages": node.progress.pages})
            self._close_spider_soon("bigcrawl_max_pages")
        elif node.parts.control.is_drained and not node.workload.is_stopping and self._is_open():
            node.workload.stop()
            logger.info("this node is drained: its partitions go to others")
            self._close_spider_soon("bigcrawl_drained")

        elif node.parts.control.is_closed and not node.workload.is_stopping and self._is_open():
            node.workload.stop()
            logger.info(
                "the crawl is closed: all nodes together fetch fewer pages a second than BIGCRAWL_CLOSE_RATE; the "
                "same command continues"
            )
            self._close_spider_soon("bigcrawl_low_rate")

    def end(self) -> None:
        self._is_over = True

    def fail(self, error: BigcrawlError) -> None:
        if self.has_failed:
            return
        self.has_failed = True
        logger.error("%(error)s", {"error": error})
        self._record_failure()
        if self._crawler.engine.running and not self.is_closing():
            self._close_spider_soon("bigcrawl_failed")

    def _close_spider_soon(self, reason: str) -> None:
        self._closing = asyncio.ensure_future(self._close_spider(reason))

    async def _close_spider(self, reason: str) -> None:
        try:
            await self._crawler.engine.close_spider_async(reason=reason)
        except RuntimeError:  # the spider was never opened, or is closed already
            return

    def _return_unstarted(self) -> None:
        """Return unstarted URLs, because the spider closes. Fetches under way have BIGCRAWL_STOP_GRACE to end."""
        assert self._node is not None
        now = asyncio.get_running_loop().time()
        if self._abort_at is None:
            self._node.departure.stop()
            self._node.handout.return_unstarted()
            self._abort_at = now + self._grace_ms / 1000
        elif now >= self._abort_at:
            abort = getattr(self._crawler.engine.downloader, "abort_all", None)
            if abort is not None:
                abort()

    def break_off(self) -> None:
        """Give up running fetches, because the lease is over. The crawl continues."""
        break_off = getattr(self._crawler.engine.downloader, "break_off", None)
        if break_off is not None and (given_up := break_off()):
            logger.warning(
                "this node's lease has expired, because the machine slept or Redis did not answer; %(count)d fetches "
                "are aborted",
                {"count": given_up},
            )

    def left_ms(self) -> int:
        """Return how long this process may still take to close after a stop signal; `CLOSE_MS` if there was none."""
        now = asyncio.get_running_loop().time()
        if self._hurried_at is None and (self.has_failed or self._is_stopped()):
            self._hurried_at = now
        waited_ms = round((now - (self._hurried_at or now)) * 1000)
        return max(CLOSE_MS_MIN, CLOSE_MS - waited_ms)

    def has_time(self) -> bool:
        """Whether the node has time for more calls, apart from the time that the embedded server needs to end."""
        return self.left_ms() > SERVER_MS
