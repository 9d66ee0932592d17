"""Progress during the crawl: a row updated every second, or lines of the log; and a summary table at its end."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from bigcrawl.clock import length_text
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.extensions.summary import summary_table
from bigcrawl.logs.installed import INSTALLED
from bigcrawl.logs.plain import excerpt_of, plain_lines
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.registry import frontier_of, has_failed

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl.extensions.row import ProgressRow
    from bigcrawl.redisdb.scripts import NodesMade
    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.scheduler.crawl.survey import Survey

logger = logging.getLogger(__name__)

ROW_S = 1.0
REASON_CHARACTERS = 40


class Progress:
    def __init__(self, crawler: Crawler, every_s: float) -> None:
        self._crawler = crawler
        self._every_s = every_s
        self._row: ProgressRow | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = time.monotonic()
        self._first_pages = 0
        self._past: deque[tuple[float, int]] = deque()
        self._reason = ""
        self._seconds = 0.0
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)
        crawler.signals.connect(self.engine_stopped, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        every_s = read_config(crawler.settings).progress_ms / 1000
        if not every_s:
            raise NotConfigured("BIGCRAWL_PROGRESS_SECONDS is 0")
        return cls(crawler, every_s)

    def spider_opened(self) -> None:
        frontier = frontier_of(self._crawler)
        if frontier is not None and frontier.node is not None:
            self._first_pages = frontier.node.progress.pages_before
            self._past.append((self._started, self._first_pages))
            if sys.stderr.isatty():
                from bigcrawl.extensions.row import ProgressRow

                self._row = ProgressRow()
            self._task = asyncio.ensure_future(self._log_progress(frontier, self._row))

    def spider_closed(self, reason: str) -> None:
        self._reason, self._seconds = reason, time.monotonic() - self._started
        if self._task is not None:
            self._task.cancel()
        if self._row is not None:
            self._row.close()

    async def engine_stopped(self) -> None:
        """Print the summary of the whole crawl after all log lines; a failed start has none."""
        await EngineProbe(self._crawler).until_over()  # after a signal, Scrapy sends this while it is still closing
        frontier = frontier_of(self._crawler)
        seen = frontier.last_survey if frontier is not None else None
        if frontier is None or seen is None or (has_failed(self._crawler) and not seen.counts["appended_urls"]):
            return
        # Items on standard output must not be mixed with the table.
        has_items = any(str(uri).startswith("stdout:") for uri in self._crawler.settings.getdict("FEEDS"))
        assert self._crawler.stats is not None
        refused = self._crawler.stats.get_value("bigcrawl/dropped/not-storable", 0)
        table = summary_table(frontier, seen, self._reason, self._seconds, self._first_pages, refused)
        if INSTALLED.handler is not None:  # every line is an object
            logger.info("%(table)s", {"table": table})
            return
        print(plain_lines(table), file=sys.stderr if has_items else sys.stdout)

    async def _log_progress(self, frontier: Frontier, row: ProgressRow | None) -> None:
        """Update the row every second. If the log goes to a file, also log a line at intervals."""
        assert frontier.node is not None
        log_at = 0.0
        while True:
            await asyncio.sleep(ROW_S if row is not None else self._every_s)
            try:
                seen = await frontier.node.progress.survey_lately()
            except BigcrawlError:
                continue  # the node itself logs that Redis is away
            now = time.monotonic()
            rate = self._rate(now, seen.pages)
            if row is not None:
                row.show_parts(self._line_parts(frontier, seen, rate))
            if (row is None or not row.has_log) and now >= log_at:
                log_at = now + self._every_s * (row is not None)
                why = f"; nothing moves: {self._standstill_reason(frontier, seen)}" if not rate else ""
                logger.info("%(line)s", {"line": self._log_line(frontier, seen, rate) + why})

    def _rate(self, now: float, pages: int) -> float:
        self._past.append((now, pages))
        while len(self._past) > 2 and self._past[1][0] <= now - self._every_s:
            self._past.popleft()
        then, before = self._past[0]
        return (pages - before) / max(now - then, 1e-3)

    def _log_line(self, frontier: Frontier, seen: Survey, rate: float) -> str:
        crowd = f"; crowded: {crowded}" if (crowded := self._congestion_text()) else ""
        made = _total_output(frontier)
        logged = f"; log: {made.warnings} warnings, {made.errors} errors" if made.warnings or made.errors else ""
        return (
            f"{seen.pages} pages, {rate:.1f} pages/s; hosts: {seen.hosts_ready} ready, {seen.hosts_waiting} waiting, "
            f"{seen.hosts_busy} busy; URLs: {seen.waiting} waiting{_done_text(seen, rate)}, {seen.counts['seen']} "
            f"seen; {made.items} items; {seen.counts['bytes'] / 1e6:.1f} MB{_errors(seen)}{logged}{crowd}"
        )

    @staticmethod
    def _standstill_reason(frontier: Frontier, seen: Survey) -> str:
        from bigcrawl.views.standstill import CrawlFacts, standstill_reasons  # most crawls never stand still

        node = frontier.node
        assert node is not None
        parts = node.parts
        facts = CrawlFacts(
            seen,
            {name: {**report, "rate": 0.0} for name, report in node.membership.reports.items()},
            finished=node.progress.is_finished,
            starting=(node.node_id,) if node.starts.are_under_way else (),
            paused=parts.control.paused,
            has_speed=not parts.handout.speed.speed.is_paused or bool(parts.control.paused),
            pages_max=frontier.config.crawl.pages_max,
        )
        return standstill_reasons(facts)[0]

    def _line_parts(self, frontier: Frontier, seen: Survey, rate: float) -> list[str]:
        """Return the parts of the row, the most important first, because the row may be cut short."""
        crowded, made = self._congestion_text(), _total_output(frontier)
        why = "" if rate else excerpt_of(self._standstill_reason(frontier, seen), REASON_CHARACTERS)
        return [
            f"{_short_number(seen.pages)} pages",
            f"{rate:.1f}/s",
            *([f"crowded: {crowded.partition(' fetches')[0]}"] if crowded else []),
            *([why] if why else []),
            f"{_short_number(made.items)} items",
            f"{_short_number(seen.waiting)} URLs wait{_done_text(seen, rate)}",
            *([f"{_short_number(made.errors)} errors"] if made.errors else []),
            *([f"{_short_number(made.warnings)} warnings"] if made.warnings else []),
            f"{_short_number(seen.hosts_busy)} hosts busy",
        ]

    def _congestion_text(self) -> str:
        frontier = frontier_of(self._crawler)
        assert frontier is not None
        assert frontier.node is not None
        crowd = frontier.node.handout.crowd
        return str(crowd) if crowd.is_crowded else ""


def _total_output(frontier: Frontier) -> NodesMade:
    assert frontier.node is not None
    return frontier.node.membership.made_by_all


def _done_text(seen: Survey, rate: float) -> str:
    left = seen.waiting + seen.urls_taken
    return f" (done in {length_text(left / rate)})" if left and rate else ""


def _errors(seen: Survey) -> str:
    errors = {
        name.partition(":")[2]: count for name, count in seen.counts.items() if name.startswith("error:") and count
    }
    if not errors:
        return ""
    return f"; {sum(errors.values())} errors, most by {max(errors, key=errors.__getitem__)}"


def _short_number(number: int) -> str:
    if number < 100_000:
        return f"{number:,}"
    from tqdm import tqdm

    return str(tqdm.format_sizeof(number))
