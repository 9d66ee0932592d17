"""Writes the crawl's report when its last node ends. The add-on loads it if BIGCRAWL_REPORT_DIR is set."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from scrapy import signals

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.report.files import HTML, write_report
from bigcrawl.scheduler.adapter.registry import frontier_of, has_failed

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl.config import Config

logger = logging.getLogger(__name__)

IN_HASTE: Final = "shutdown"
"""The reason of a spider that is stopped by a signal: whoever sent it may not wait for a report."""


class EndReport:
    """Writes the report once the node has left the crawl, in a thread, from Redis and the files like any command."""

    def __init__(self, crawler: Crawler, config: Config, directory: Path) -> None:
        self._crawler = crawler
        self._config = config
        self._directory = directory
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = read_config(crawler.settings)
        assert config.crawl.report_dir is not None, "the add-on loads this only with a directory"
        return cls(crawler, config, config.crawl.report_dir)

    async def spider_closed(self, reason: str) -> None:
        """Write the report, unless the node never joined, is stopped by a signal, or others go on."""
        frontier = frontier_of(self._crawler)
        if frontier is None or frontier.node is None or reason == IN_HASTE or has_failed(self._crawler):
            return
        try:
            if await asyncio.to_thread(self._write, frontier.node.parts.node_id):
                logger.info("report: %(file)s", {"file": self._directory / HTML})
            else:
                logger.info("other nodes are listed as alive: the last of them writes the report")
        except BigcrawlError as error:
            logger.warning(
                "no report was written: %(error)s; `scrapy frontier report` writes one later", {"error": error}
            )
        except Exception:
            logger.exception("no report was written; `scrapy frontier report` writes one later")

    def _write(self, node_id: str) -> bool:
        """Write the report. False if other nodes are alive, of which the last one will write it."""
        with server_of(self._config) as server:
            return asyncio.run(self._write_if_last(server, node_id))

    async def _write_if_last(self, server: str, node_id: str) -> bool:
        async with opened(self._config, server) as crawl:
            # This node is among them if it found no time to leave.
            if await crawl.nodes() - {node_id}:
                return False
        await write_report(self._config, server, self._directory)
        return True
