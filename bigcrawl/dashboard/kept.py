"""Keeps a crawl open between frequent queries, for `KEPT_S` at most, as another crawl may have replaced it."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.views.opened_crawl import OpenedCrawl, keeping_open

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from bigcrawl.config import Config

KEPT_S: Final = 60.0


class KeptCrawl:
    """An open crawl with an event loop; use it in one thread only."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._runner: asyncio.Runner | None = None
        self._crawl: OpenedCrawl | None = None
        self._until_s = 0.0  # monotonic

    def query(self, question: Callable[[OpenedCrawl], Awaitable[Any]]) -> Any:
        """Return the answer to a question about the crawl. After an error, the next question reopens it."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(self._query(question))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Make this thread's actions use the open crawl, and close it at the end."""
        with keeping_open(self.query):
            yield
        self.close()

    def close(self) -> None:
        if self._runner is not None:
            with suppress(BigcrawlError):
                self._runner.run(self._close())
            self._runner.close()
            self._runner = None

    async def _query(self, question: Callable[[OpenedCrawl], Awaitable[Any]]) -> Any:
        try:
            return await question(await self._open_crawl())
        except BaseException:
            await self._close()
            raise

    async def _open_crawl(self) -> OpenedCrawl:
        if self._crawl is not None and time.monotonic() < self._until_s:
            return self._crawl
        await self._close()
        assert self._config.crawl.redis_url is not None, "who serves the dashboard knows the crawl's Redis"
        client = RedisClient(self._config.crawl.redis_url)
        try:
            self._crawl = await OpenedCrawl.of(self._config, client)
        except BaseException:
            await client.close()
            raise
        self._until_s = time.monotonic() + KEPT_S
        return self._crawl

    async def _close(self) -> None:
        crawl, self._crawl = self._crawl, None
        if crawl is not None:
            await crawl.client.close()
