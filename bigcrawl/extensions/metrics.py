"""Serves a node's metrics for Prometheus while the crawl runs. The add-on loads it if BIGCRAWL_METRICS is on."""

from __future__ import annotations

import asyncio
import logging
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import listen_tcp
from twisted.internet.error import CannotListenError

from bigcrawl.config import read_config
from bigcrawl.metrics.disk_left import DiskLeft
from bigcrawl.metrics.owned import OwnedSums
from bigcrawl.metrics.page import MetricsSite
from bigcrawl.metrics.source import Source
from bigcrawl.metrics.text import MetricsText
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from twisted.internet.tcp import Port

    from bigcrawl.config import Config
    from bigcrawl.scheduler.node.assembly import Parts

logger = logging.getLogger(__name__)

RETRY_S: Final = 10.0  # until a port is free, for instance that of a process that is about to end


class Metrics:
    """Listens from the start of the spider to its end. If it cannot, the crawl goes on and it tries again."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._parts: Parts | None = None
        self._site: MetricsSite | None = None
        self._port: Port | None = None
        self._again: asyncio.TimerHandle | None = None
        warc = config.crawl.warc_dir
        self._disk = DiskLeft({"state": config.crawl.state_dir, **({"warc": warc} if warc is not None else {})})
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, read_config(crawler.settings))

    def spider_opened(self) -> None:
        """Begin to listen."""
        frontier = frontier_of(self._crawler)
        if frontier is None or frontier.node is None:
            return
        assert self._crawler.stats is not None
        sums = OwnedSums()
        self._parts = frontier.node.parts
        self._parts.leases.tell_views_to(sums.note)
        self._disk.start()
        source = Source(self._parts, self._crawler.stats.get_value, sums, self._disk)
        self._site = MetricsSite(MetricsText(source, self._config.crawl.name).write)
        self._listen(self._site)

    async def spider_closed(self) -> None:
        """Stop listening, and close all connections."""
        if self._again is not None:
            self._again.cancel()
        self._disk.stop()
        if self._parts is not None:
            self._parts.leases.tell_views_to(None)
        if self._port is not None:
            await maybe_deferred_to_future(self._port.stopListening())  # type: ignore[no-untyped-call]
        if self._site is not None:
            self._site.close()

    def _listen(self, site: MetricsSite, *, is_first: bool = True) -> None:
        address, ports = self._config.metrics.address, self._config.metrics.ports
        try:
            self._port = listen_tcp(list(ports), address, site)  # type: ignore[arg-type]  # Twisted's own Site
        except CannotListenError as error:
            if is_first:
                self._report(error)
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(RETRY_S, lambda: self._listen(site, is_first=False))
            return
        found = ip_address(address)
        host = f"[{found}]" if found.version == 6 else str(found)
        port = self._port.getHost().port  # type: ignore[no-untyped-call]
        logger.info("metrics: http://%(host)s:%(port)d/metrics", {"host": host, "port": port})
        if not found.is_loopback:
            logger.warning("whoever reaches %(host)s can read the metrics; there is no password", {"host": host})

    def _report(self, error: CannotListenError) -> None:
        ports = self._config.metrics.ports
        logger.error(
            "metrics are not served yet: BIGCRAWL_METRICS_PORT %(ports)s at %(address)s cannot be used (%(error)s); "
            "tried again every %(seconds)d s",
            {
                "address": self._config.metrics.address,
                "ports": "-".join(map(str, dict.fromkeys(ports))),
                "error": error.socketError,
                "seconds": RETRY_S,
            },
        )
