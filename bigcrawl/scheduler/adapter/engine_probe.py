"""The only file that uses private parts of Scrapy's engine. Each use has a fallback.

what is needed                             from                          fallback
has a request ended, with its pipelines?   engine._slot.inprogress       downloader.active, scraper.slot
ask the scheduler again now                engine._slot.nextcall         Scrapy's own 5 s heartbeat
is the engine closing?                     engine._slot.closing          not engine.running
can the spider be closed?                  engine._slot, scraper.slot    engine.running
is the spider opening?                     engine._slot, scraper.slot    no
was the crawler stopped?                   crawler._started              not crawler.crawling
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler


LOOK_S = 0.05


class EngineProbe:
    """Questions to a crawler's engine, answered before the engine exists, too."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._known_engine: Any = None

    def has_ended(self, request: Request) -> bool:
        return bool(self.ended((request,)))

    def ended(self, requests: Iterable[Request]) -> list[Request]:
        """Return the requests with which the engine is done: fetched, parsed, and their items processed."""
        engine = self._engine()
        slot = getattr(engine, "_slot", None)
        if slot is not None and hasattr(slot, "inprogress"):
            in_progress = slot.inprogress
        elif engine is None or engine.scraper.slot is None:
            in_progress = ()
        else:
            in_progress = {*engine.downloader.active, *engine.scraper.slot.active}
        return [request for request in requests if request not in in_progress]

    def wake(self) -> None:
        engine = self._engine()
        if engine is None or engine.scraper.slot is None:
            return  # the spider is opening: the engine asks by itself afterwards, and fails if it asks before
        slot = getattr(engine, "_slot", None)
        nextcall = getattr(slot, "nextcall", None)
        if nextcall is not None and getattr(slot, "closing", None) is None:
            nextcall.schedule()

    async def until_opened(self) -> None:
        """Wait until the spider is open: Scrapy's engine fails if a download ends before that."""
        while self._is_opening():  # noqa: ASYNC110 - Scrapy announces nothing
            await asyncio.sleep(LOOK_S)

    def _is_opening(self) -> bool:
        engine = self._engine()
        slot = getattr(engine, "_slot", None)
        return slot is not None and engine.scraper.slot is None and getattr(slot, "closing", None) is None

    def is_open(self) -> bool:
        """Whether the spider is open, so that it can be closed. As a fallback, whether the engine runs."""
        engine = self._engine()
        if engine is None or engine.scraper.slot is None:
            return False
        return getattr(engine, "_slot", engine.running) is not None and bool(engine.running)

    def is_closing(self) -> bool:
        engine = self._engine()
        if engine is None:
            return False
        slot = getattr(engine, "_slot", None)
        if slot is None:
            return not engine.running
        return getattr(slot, "closing", None) is not None

    def is_stopped(self) -> bool:
        """Whether the crawl was stopped, even before the spider is open. False if the crawler was never started."""
        return not self._crawler.crawling and getattr(self._crawler, "_started", True)

    def is_over(self) -> bool:
        """Whether no spider is open, opening or closing any more: closed, or its scheduler could not be made."""
        engine = self._engine()
        if engine is None or engine.spider is None:
            return True
        return getattr(engine, "_slot", engine) is None and not self._crawler.crawling

    async def until_over(self) -> None:
        while not self.is_over():  # noqa: ASYNC110 - Scrapy announces nothing
            await asyncio.sleep(LOOK_S)

    def is_paused(self) -> bool:
        return bool(getattr(self._engine(), "paused", False))

    def _engine(self) -> Any:
        if self._known_engine is None:
            try:
                self._known_engine = self._crawler.engine
            except (RuntimeError, AttributeError):
                return None
        return self._known_engine
