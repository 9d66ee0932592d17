"""Joins this process to its crawl: connects to Redis, starts the embedded server if there is one, and a node."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError, TransientStoreError
from bigcrawl.politeness.dns_shared import shared_dns
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.scheduler.adapter.early_server import CrawlServer, begun_server
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.robots_fetch import RobotsFetch
from bigcrawl.scheduler.adapter.values.codec import PLAIN, ValueCodec
from bigcrawl.scheduler.node.assembly import Parts
from bigcrawl.scheduler.node.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.crawler import Crawler

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.scheduler.handout.engine_side import EngineSide

T = TypeVar("T")

logger = logging.getLogger(__name__)

JOIN_LOOK_S = 0.1  # between two checks whether the start was called off
JOIN_LOOKS = 5  # checks before the start is tried again
CALLED_OFF_LOOKS = 30  # checks before a start that was called off is cut short; most have ended by then


class CrawlJoin:
    def __init__(self, crawler: Crawler, config: Config, clock: Clock) -> None:
        self._crawler = crawler
        self._is_called_off = EngineProbe(crawler).is_stopped
        self._config = config
        self._clock = clock
        self._embedded = begun_server(crawler)
        self._client: RedisClient | None = None
        self._values = PLAIN
        self._has_warned = False
        self.has_begun_crawl = False

    async def join(self, engine: EngineSide, values: ValueCodec = PLAIN) -> Node | None:
        """Start a node; first delete the crawl if BIGCRAWL_FRESH is set.

        Temporary failures are waited for: a Redis that restarts or cannot write, a full disk. An embedded server that
        dies meanwhile is started again. A start that is called off by a signal ends with None, or with a node that has
        joined. Raises BigcrawlError if waiting does not help or took too long.
        """
        self._values = values
        crawl = self._config.crawl
        if self._is_called_off():
            return None
        if crawl.is_fresh:
            await self._delete_crawl()
        now = asyncio.get_running_loop().time
        until = now() + self._config.frontier.start_wait_ms / 1000
        while True:
            try:
                url = crawl.redis_url or await self._start_embedded()
                return await self._try_to_join(url, engine) if url is not None else None
            except BigcrawlError as error:
                if self._is_called_off():
                    return None
                if not isinstance(error, TransientStoreError | OwnershipLostError) or now() >= until:
                    raise
                self._warn_once(error, until - now())
                await self._wait_before_retry()
                if self._is_called_off():
                    return None

    async def _delete_crawl(self) -> None:
        from bigcrawl.scheduler.crawl.deletion import delete_crawl

        if any(await delete_crawl(self._config)):
            logger.info("crawl %(name)s starts from scratch: BIGCRAWL_FRESH", {"name": self._config.crawl.name})

    async def _try_to_join(self, url: str, engine: EngineSide) -> Node:
        self._client = client = RedisClient(url)
        fetch = RobotsFetch(self._crawler, self._config.politeness.connection_keys, self._values)
        node = Node(Parts(self._config, client, shared_dns(), self._clock, fetch, engine))
        try:
            await self._unless_called_off(node.start())
        except BigcrawlError:
            await node.departure.abandon()
            await client.close()
            raise
        finally:
            self.has_begun_crawl = self.has_begun_crawl or node.parts.crawl.is_new
        return node

    def _warn_once(self, error: BigcrawlError, left_s: float) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "cannot start yet: %(error)s; trying for %(seconds)d s (BIGCRAWL_START_WAIT)",
                {"error": error, "seconds": round(left_s)},
            )

    async def _wait_before_retry(self) -> None:
        for _ in range(JOIN_LOOKS):
            if self._is_called_off():
                return
            await asyncio.sleep(JOIN_LOOK_S)

    async def _unless_called_off(self, work: Coroutine[Any, Any, T], give_up: Callable[[], object] | None = None) -> T:
        """Do the work, but give it up with a TransientStoreError soon after the start was called off."""
        task = asyncio.ensure_future(work)
        looks = CALLED_OFF_LOOKS
        while looks and not task.done():
            await asyncio.wait([task], timeout=JOIN_LOOK_S)
            looks -= self._is_called_off()
        if not task.done() and give_up is not None:
            await asyncio.to_thread(give_up)
        elif not task.done():
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            raise TransientStoreError("the spider was closed before the crawl could start") from None

    async def _start_embedded(self) -> str | None:
        self._embedded = server = self._embedded or CrawlServer(self._config.crawl)
        try:
            return await self._unless_called_off(asyncio.to_thread(server.start), server.leave)
        except BigcrawlError:
            if not self._is_called_off():
                raise
        await asyncio.to_thread(server.stop_if_unused)  # it may have begun to load
        return None

    def revive_server(self) -> None:
        """Start the embedded server again if it died. Any other server is for its operator to restart."""
        if self._embedded is not None:
            self._embedded.ensure_running()

    async def leave(self, left_ms: Callable[[], int]) -> None:
        """Close the connection, and the embedded server unless another crawl uses it, within `left_ms()`."""
        if self._client is not None:
            await self._client.close()
        if self._embedded is not None:
            try:
                await asyncio.to_thread(self._embedded.leave, left_ms())
            except BigcrawlError as error:
                logger.warning("%(error)s", {"error": error})
