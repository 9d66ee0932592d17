"""One line of progress while the crawl runs, and a summary table at its end."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.extensions.summary import summary_table
from bigcrawl.scheduler.registry import frontier_of, has_failed

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.scheduler import Scheduler
    from bigcrawl.scheduler.survey import Survey

logger = logging.getLogger(__name__)

LIVE_S = 1.0  # on a terminal the line is rewritten in place


class Progress:
    """Reads the whole crawl's counters; costs one round trip a line."""

    def __init__(self, crawler: Crawler, every_s: float) -> None:
        self._crawler = crawler
        self._every_s = every_s
        self._live = sys.stderr.isatty()
        self._task: asyncio.Task[None] | None = None
        self._started = time.monotonic()
        self._before: tuple[float, int] | None = None
        self._first_pages = 0
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        every_s = read_config(crawler.settings).progress_ms / 1000
        if not every_s:
            raise NotConfigured("BIGCRAWL_PROGRESS_SECONDS is 0")
        return cls(crawler, every_s)

    def spider_opened(self) -> None:
        """Begin to report."""
        frontier = frontier_of(self._crawler)
        if frontier is not None and frontier.node is not None:
            self._first_pages = frontier.node.pages_before
            self._task = asyncio.ensure_future(self._report(frontier))

    async def spider_closed(self, reason: str) -> None:
        """End with the summary of the whole crawl, resumes and all nodes counted; a failed start needs none."""
        if self._task is not None:
            self._task.cancel()
        frontier = frontier_of(self._crawler)
        if self._live:
            print(file=sys.stderr)  # noqa: T201
        seen = frontier.last_survey if frontier is not None else None
        if frontier is None or seen is None or (has_failed(self._crawler) and not seen.counts["appended_urls"]):
            return
        seconds = time.monotonic() - self._started
        # Items that were asked for on standard output are alone there.
        has_items = any(str(uri).startswith("stdout:") for uri in self._crawler.settings.getdict("FEEDS"))
        table = summary_table(frontier, seen, reason, seconds, self._first_pages)
        print(table, file=sys.stderr if has_items else sys.stdout)

    async def _report(self, frontier: Scheduler) -> None:
        while True:
            await asyncio.sleep(LIVE_S if self._live else self._every_s)
            assert frontier.node is not None
            try:
                seen = await frontier.node.survey()
            except BigcrawlError:
                continue  # the node says itself that Redis is away
            self._say(self._line(seen))

    def _line(self, seen: Survey) -> str:
        now = time.monotonic()
        before = self._before or (self._started, self._first_pages)
        rate = (seen.pages - before[1]) / max(now - before[0], 1e-3)
        self._before = (now, seen.pages)
        return (
            f"{seen.pages} pages, {rate:.1f} pages/s; hosts: {seen.hosts_ready} ready, {seen.hosts_waiting} waiting, "
            f"{seen.hosts_busy} busy; URLs: {seen.waiting} waiting, {seen.counts['seen']} seen; "
            f"{seen.counts['bytes'] / 1e6:.1f} MB{self._crowd()}"
        )

    def _crowd(self) -> str:
        """A word on this node, where it fetches less at a time than it might."""
        frontier = frontier_of(self._crawler)
        assert frontier is not None
        assert frontier.node is not None
        crowd = frontier.node.handout.crowd
        return f"; crowded: {crowd}" if crowd.is_crowded else ""

    def _say(self, line: str) -> None:
        if self._live:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)  # noqa: T201
        else:
            logger.info("%(line)s", {"line": line})
