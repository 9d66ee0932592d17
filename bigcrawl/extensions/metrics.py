"""Serves a node's metrics for Prometheus during the crawl. The add-on loads it if BIGCRAWL_METRICS is on."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from typing import TYPE_CHECKING

from scrapy import signals

from bigcrawl.config import read_config
from bigcrawl.metrics.source import DiskSpaceLeft, MetricsSource, OwnedSums
from bigcrawl.metrics.text import MetricsText, metrics_site
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.serving.sites import Listener
from bigcrawl.stats_buffer import stats_wanted

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl.config import Config
    from bigcrawl.scheduler.node.heartbeat import Leases

logger = logging.getLogger(__name__)


class Metrics:
    """Listens from the start of the spider to its end. If the port fails, it retries and the crawl continues."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._leases: Leases | None = None
        where = config.metrics
        self._listener = Listener("metrics", "BIGCRAWL_METRICS_PORT", where.address, where.ports, "/metrics")
        warc = config.crawl.warc_dir
        self._disk = DiskSpaceLeft({"state": config.crawl.state_dir, **({"warc": warc} if warc is not None else {})})
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, read_config(crawler.settings))

    def spider_opened(self) -> None:
        frontier = frontier_of(self._crawler)
        if frontier is None or frontier.node is None:
            return
        assert self._crawler.stats is not None
        sums = OwnedSums()
        self._leases = frontier.node.beat.leases
        self._leases.tell_views_to(sums.add_up_views)
        self._disk.start()
        source = MetricsSource(frontier.node.parts, self._crawler.stats.get_value, sums, self._disk)
        text = MetricsText(source, self._config.crawl.name)
        self._listener.listen(metrics_site(lambda accept: self._written(text, accept)))
        if not ip_address(self._config.metrics.address).is_loopback:
            logger.warning(
                "everyone who can reach %(host)s can read the metrics; there is no password",
                {"host": self._config.metrics.address},
            )

    def _written(self, text: MetricsText, accept: str) -> tuple[bytes, str]:
        self._crawler.signals.send_catch_log(stats_wanted)
        return text.write(accept)

    async def spider_closed(self) -> None:
        self._disk.stop()
        if self._leases is not None:
            self._leases.tell_views_to(None)
        await self._listener.close()
