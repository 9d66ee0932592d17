"""Serves the dashboard during the crawl. The add-on loads it if BIGCRAWL_DASHBOARD is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from bigcrawl.commands.running import data_of_action
from bigcrawl.config import read_config
from bigcrawl.dashboard.face import DashboardSite, listener_of
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl.config import Config


class Dashboard:
    """Listens from the start of the spider to its end. If the port fails, it retries and the crawl continues."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._site: DashboardSite | None = None
        self._listener = listener_of(config)
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, read_config(crawler.settings))

    def spider_opened(self) -> None:
        frontier = frontier_of(self._crawler)
        if frontier is None or frontier.node is None:
            return
        # The node's own server, so that the dashboard neither starts nor keeps one.
        crawl = self._config.crawl.replace(redis_url=frontier.node.parts.crawl.client.url)
        self._site = DashboardSite(self._config.replace(crawl=crawl), data_of_action)
        self._site.start()
        self._listener.listen(self._site)

    async def spider_closed(self) -> None:
        await self._listener.close()
        if self._site is not None:
            await self._site.stop()
