"""The frontier's interface to Scrapy: `SCHEDULER = "bigcrawl.scheduler.scheduler.Scheduler"`; no I/O.

Differences from Scrapy's scheduler:

- `enqueue_request` returning True means *accepted for the seen check*, not *new*: the URL's partition, maybe on another
node, decides that when the URL's batch is merged.
- `next_request` never waits for Redis or disk: it pops a deque. None means "not now".
- Politeness comes from the ready heap, not from the downloader's slots.

No exception escapes from these methods: one could hang the engine so that even SIGTERM would not end it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Self

from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import get_scrapy_root_handler
from scrapy.utils.reactor import is_reactor_installed

from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.logs.plain import make_plain
from bigcrawl.politeness.addresses import AddressGuard
from bigcrawl.politeness.dns_shared import join_dns, leave_dns
from bigcrawl.scan import CODE
from bigcrawl.scheduler.adapter.arguments import arguments_of
from bigcrawl.scheduler.adapter.digests import warn_if_edited
from bigcrawl.scheduler.adapter.drops import DroppedRequests
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.joining import CrawlJoin
from bigcrawl.scheduler.adapter.live_requests import LiveRequests
from bigcrawl.scheduler.adapter.registry import feeds_of, mark_failed, register, storage_of
from bigcrawl.scheduler.adapter.request_codec import LostRequestError
from bigcrawl.scheduler.adapter.scrapy_engine import Outputs, ScrapyEngine
from bigcrawl.scheduler.adapter.scrapys_names import ScrapysStats
from bigcrawl.scheduler.adapter.shutdown import Shutdown
from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
from bigcrawl.scheduler.adapter.spider_intake import SpiderIntake
from bigcrawl.scheduler.adapter.spider_start import SpiderStart
from bigcrawl.scheduler.adapter.started_requests import StartedRequests
from bigcrawl.scheduler.adapter.tries import FingerprintChoice
from bigcrawl.scheduler.adapter.values.known_names import record_modules
from bigcrawl.scheduler.adapter.values.vocabulary import values_of
from bigcrawl.scheduler.node.loops.memory import tame_memory, untrack_async_generators
from bigcrawl.scheduler.node.watchdog import Watchdog
from bigcrawl.scheduler.rules.callbacks import DAMAGED, Callbacks
from bigcrawl.scheduler.rules.delay_rules import delays_text

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from bigcrawl.config import Config
    from bigcrawl.scheduler.adapter.values.codec import ValueCodec
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

LOST = "lost-from-memory"


class Scheduler(BaseScheduler):
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.config = _config_of(crawler)
        politeness = self.config.politeness
        self.guard = AddressGuard(politeness.allow_private_addresses, politeness.allow_addresses)
        clock = SystemClock()
        self._probe = EngineProbe(crawler)
        self._drops = DroppedRequests(crawler, obeys_robots=politeness.obey_robots)
        self._shutdown = Shutdown(crawler, self._probe, politeness.stop_grace_ms, partial(mark_failed, crawler))
        self.started = StartedRequests(self._probe, clock, politeness.retry_after_max_ms)
        apart = (
            FingerprintChoice(crawler.request_fingerprinter.fingerprint)
            if self.config.frontier.has_fingerprints
            else None
        )
        self.intake = SpiderIntake(self.config, self.started, self._drops, apart)
        self.flow = SpiderFlow(self._shutdown)
        self.start = SpiderStart(self.flow, self._shutdown)
        self._joining = CrawlJoin(crawler, self.config, clock)
        self._watchdog = Watchdog(self.config.frontier.standstill_ms / 1000, lambda: self.started.running_url)
        self._names = ScrapysStats(crawler, self.intake)
        self.engine = ScrapyEngine(crawler, self._probe, self.started, self._shutdown, self._joining, self._names)
        self._live: LiveRequests | None = None
        self.node: Node | None = None
        self.last_survey: Survey | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        make_plain(get_scrapy_root_handler())  # Scrapy replaces the handler after the add-on and before this
        frontier = cls(crawler)
        register(crawler, frontier)
        return frontier

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        logger.info("links are read in %(code)s", {"code": CODE})
        tame_memory()
        outputs = Outputs(storage_of(self._crawler), feeds_of(self._crawler))
        record_modules()
        join_dns(self.config.dns)
        try:
            self.engine.open(outputs, Callbacks(self.config.frontier.callbacks, spider))
            values = values_of(self.config, spider)
            node = await self._joining.join(self.engine, values)
        except BigcrawlError as error:
            self.fail(error)  # `ExitStatus` closes the spider as soon as possible
            return
        if node is None:
            return  # a signal has come, and `WholeStop` closes the spider
        self.attach(node, spider, values)
        self._names.attach(node, spider, values)
        if is_reactor_installed():
            untrack_async_generators()
        self._watchdog.start(asyncio.get_running_loop())
        self._shutdown.look_out()
        logger.info("%(delays)s", {"delays": delays_text(self.config, len(node.parts.handout.paces.delays))})
        await warn_if_edited(node.parts.crawl.client, self.config.crawl.name, spider)
        if node.progress.is_finished and not hasattr(spider, "redis_key"):  # such a spider's list may have more
            logger.info(
                "crawl %(name)s is finished: %(pages)d pages, which are not fetched again; -s BIGCRAWL_FRESH=1 begins "
                "it anew, another BIGCRAWL_CRAWL begins another",
                {"name": self.config.crawl.name, "pages": node.progress.pages},
            )

    def attach(self, node: Node, spider: Spider, values: ValueCodec | None = None) -> None:
        assert self._crawler.stats is not None
        values = values or values_of(self.config, spider)
        keeps = self.config.frontier.keeps_in_memory
        instead_of, stats = self.engine.callbacks.instead_of, self._crawler.stats
        self.node, self._live = node, LiveRequests(spider, values, stats, keeps=keeps, instead_of=instead_of)
        self.started.attach(node, self._live)
        self.intake.attach(node, self._live)
        self.flow.attach(node)
        self.start.attach(node, spider)
        self._shutdown.attach(node)
        self.engine.attach(node)

    @property
    def is_resumed(self) -> bool:
        return self.node is not None and not self._joining.has_begun_crawl

    @property
    def is_open(self) -> bool:
        return self.node is not None

    def pld_of(self, host: str) -> str:
        assert self.node is not None, "it has joined its crawl"
        return self.node.crawl.pld_of(host)

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        self._shutdown.end()
        self._watchdog.stop()
        if self._live is not None:
            self._live.close()
        if self.node is not None:
            self.last_survey = await self.node.departure.close(self._shutdown.has_time)
        self.engine.close()
        await leave_dns()
        await self._joining.leave(self._shutdown.left_ms)

    def fail(self, error: BigcrawlError) -> None:
        self._shutdown.fail(error)

    def has_pending_requests(self) -> bool:
        if self.node is None or self._shutdown.has_failed:
            return False
        return (
            bool(self.started)
            or self.started.has_unqueued
            or not (self.node.progress.is_finished and self.config.crawl.close_when_empty)
        )

    def enqueue_request(self, request: Request) -> bool:
        return self.intake.enqueue(request)

    def next_request(self) -> Request | None:
        node = self.node
        if node is None:
            return None
        if (unqueued := self.started.next_unqueued()) is not None:
            return unqueued
        try:
            if node.handout.suspects:
                self.engine.poll_ended()  # other URLs may be waiting just until these have ended
            while self.engine.may_take() and (held := node.handout.buffer.pop()) is not None:
                request = self._build_request(node, held)
                if request is not None:
                    self.started.record_start(request, held)
                    node.handout.fetches.record_started(held)
                    return request
        except Exception:
            logger.exception("bigcrawl could not pass a request to Scrapy's engine")
        if not (node.handout.buffer.waiting or node.handout.lanes.waiting):
            node.pump.wake()
        return None

    def _build_request(self, node: Node, held: HeldUrl) -> Request | None:
        assert self._live is not None
        try:
            return self._live.decode(held.fields.body)
        except LostRequestError as error:
            held.refuse(LOST)
            self._drops.report_once(LOST, str(error))
            return error.request
        except Exception as error:  # noqa: BLE001 - a spider's class or methods may raise anything
            if self.engine.callbacks.drops(DAMAGED):
                node.handout.give_up(held, "undecodable")
            else:
                node.handout.fetches.stop_waiting_for(held)
                node.parts.gates.aside.put_unrunnable(held, f"its request cannot be decoded: {error!r}")
                node.pump.wake()
            return None


def _config_of(crawler: Crawler) -> Config:
    config = read_config(crawler.settings)
    spider, arguments = getattr(crawler.spider, "name", ""), arguments_of(crawler)
    return config.replace(crawl=config.crawl.replace(spider=spider, arguments=arguments))
