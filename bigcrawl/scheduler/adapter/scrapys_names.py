"""Sets Scrapy's own stats of duplicates and robots.txt, and sends `robots_parsed`, for monitors that use these."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, signals
from scrapy.utils.misc import build_from_crawler, load_object

from bigcrawl.scheduler.adapter.request_codec import LostRequestError, decode_request
from bigcrawl.stats_buffer import FLUSH_SECONDS, stats_wanted

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.adapter.spider_intake import SpiderIntake
    from bigcrawl.scheduler.adapter.values.codec import ValueCodec
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)


class ScrapysStats:
    """Keeps `dupefilter/filtered` and `robotstxt/forbidden` of this node up to date, and sends `robots_parsed`."""

    def __init__(self, crawler: Crawler, intake: SpiderIntake) -> None:
        self._crawler = crawler
        self._intake = intake
        self._node: Node | None = None
        self._due = 0.0
        crawler.signals.connect(self.update, stats_wanted)
        crawler.signals.connect(self.update, signals.spider_closed)

    def attach(self, node: Node, spider: Spider, values: ValueCodec) -> None:
        self._node = node

        async def tell(held: HeldUrl, body: bytes) -> None:
            if any(True for _ in liveReceivers(getAllReceivers(self._crawler, signals.robots_parsed))):
                await self._send_parsed(_request_of(held, spider, values), body)

        node.parts.gates.robots.tell_read_to(tell)

    def update_if_due(self) -> None:
        if monotonic() >= self._due:
            self._due = monotonic() + FLUSH_SECONDS
            self.update()

    def update(self) -> None:
        if self._node is None or self._crawler.stats is None:
            return
        parts, recent = self._node.parts, self._node.outbox.dropped_recent + self._intake.others_filtered
        forbidden = parts.gates.gatekeeper.forbidden + parts.gates.sweeper.forbidden
        for key, count in (
            ("dupefilter/filtered", parts.ownership.folding.duplicates + recent),
            ("robotstxt/forbidden", forbidden + self._intake.others_forbidden),
        ):
            if count:
                self._crawler.stats.set_value(key, count)

    async def _send_parsed(self, request: Request, body: bytes) -> None:
        try:
            kind = load_object(self._crawler.settings["ROBOTSTXT_PARSER"])
            parser = build_from_crawler(kind, self._crawler, body)
        except Exception:
            logger.exception("ROBOTSTXT_PARSER cannot read a robots.txt for receivers of robots_parsed")
            return
        await self._crawler.signals.send_catch_log_async(signals.robots_parsed, robotparser=parser, request=request)


def _request_of(held: HeldUrl, spider: Spider, values: ValueCodec) -> Request:
    try:
        return decode_request(held.fields.body, spider, str, values=values)
    except LostRequestError as error:
        return error.request
    except Exception:  # noqa: BLE001 - reported when it is handed out
        return Request(held.url, meta={"verbatim_url": True})
