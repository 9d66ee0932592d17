from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.exceptions import NotConfigured

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, MissingAnnexError
from bigcrawl.given import load_module
from bigcrawl.scheduler.adapter.registry import frontier_of, has_failed
from bigcrawl.views.counted import NothingCountedError
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

logger = logging.getLogger(__name__)

IN_HASTE: Final = "shutdown"
"""Scrapy's reason for a stop by a signal, whose sender might not wait for a report."""


class EndReport:
    def __init__(self, crawler: Crawler, config: Config, directory: Path) -> None:
        self._crawler = crawler
        self._config = config
        self._directory = directory
        self._report = load_module("bigcrawl_report.command")
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = read_config(crawler.settings)
        assert config.crawl.report_dir is not None, "the add-on loads this only with a directory"
        try:
            return cls(crawler, config, config.crawl.report_dir)
        except MissingAnnexError as error:
            raise NotConfigured(str(error)) from error

    async def spider_closed(self, reason: str) -> None:
        """Write the report, unless the node never joined, a signal stopped it, or other nodes are alive."""
        frontier = frontier_of(self._crawler)
        if frontier is None or frontier.node is None or reason == IN_HASTE or has_failed(self._crawler):
            return
        try:
            if await asyncio.to_thread(self._write_report, frontier.node.parts.crawl.node_id):
                logger.info("report: %(file)s", {"file": self._directory / self._report.HTML})
            else:
                logger.info("other nodes are listed as alive: the last of them writes the report")
        except NothingCountedError as error:
            logger.warning("no report was written: %(error)s", {"error": error})
        except BigcrawlError as error:
            logger.warning(
                "no report was written: %(error)s; `scrapy frontier report` writes one later", {"error": error}
            )
        except Exception:
            logger.exception("no report was written; `scrapy frontier report` writes one later")

    def _write_report(self, node_id: str) -> bool:
        return in_crawl(self._config, self._write_if_last, node_id)

    async def _write_if_last(self, crawl: OpenedCrawl, node_id: str) -> bool:
        # Includes this node if it had no time to leave.
        if await crawl.nodes() - {node_id}:
            return False
        await self._report.write_report(crawl, self._directory)
        return True
