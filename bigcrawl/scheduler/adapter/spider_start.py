"""A spider's start: which node runs its start requests, and when they and sitemaps are safe in Redis."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.adapter.digests import start_digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Spider

    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
    from bigcrawl.scheduler.node.node import Node

    Telling = Callable[[str, list[str]], Awaitable[None]]

logger = logging.getLogger(__name__)

FLUSH_POLL_S = 0.05
FLUSH_TRIES = 100
START_RETRY_S = 1.0
START_DONE = 2


class SpiderStart:
    def __init__(self, flow: SpiderFlow, shutdown: Shutdown) -> None:
        self._flow = flow
        self._shutdown = shutdown
        self._node: Node | None = None
        self._spider: Spider | None = None

    def attach(self, node: Node, spider: Spider) -> None:
        self._node, self._spider = node, spider

    def tell_sitemaps(self, tell: Telling) -> None:
        """Call `tell` with each robots.txt and its sitemaps before its rules are stored, so that a crash repeats it."""
        if self._node is None:
            return

        async def tell_and_flush(robots_url: str, urls: list[str]) -> None:
            await tell(robots_url, urls)
            offered, tries_left = self._flow.offered(), FLUSH_TRIES
            while not self._flow.are_sent(offered) and tries_left and not self._shutdown.is_closing():
                tries_left -= 1
                await asyncio.sleep(FLUSH_POLL_S)

        self._node.parts.gates.robots.tell_sitemaps_to(tell_and_flush)

    async def claim(self) -> bool:
        """Wait until this node may run the start requests (True), or some node has run them (False)."""
        digest = start_digest(self._spider) if self._spider is not None else ""
        while (node := self._node) is not None and not self._shutdown.is_closing():
            try:
                if getattr(self._spider, "lacks_start_requests", False) and await node.starts.were_sent():
                    logger.warning("this node has no seeds, so it only joins a crawl that another node has begun")
                    return False
                claim = await node.starts.claim(digest)
                node.progress.record_start(is_done=claim == START_DONE)
            except TransientStoreError:
                claim = 0
            if claim:
                return claim == 1
            await asyncio.sleep(START_RETRY_S)
        return False

    async def end(self) -> None:
        offered = self._flow.offered()
        while self._node is not None and not self._shutdown.is_closing():
            if self._flow.are_sent(offered):
                try:
                    await self._node.starts.end()
                    return
                except TransientStoreError:
                    pass
            await asyncio.sleep(FLUSH_POLL_S)

    async def give_up(self) -> None:
        node = self._node
        while node is not None and node.starts.are_under_way and not self._shutdown.is_closing():
            try:
                await node.starts.leave_undone()
            except TransientStoreError:
                await asyncio.sleep(START_RETRY_S)
