"""Reads the entries of a Redis list for one node, in batches.

Redis keeps a batch under a lease until its requests are in the inboxes. If the node dies, another node queues them
again; the seen check finds the duplicates by URL, or by entry with `dont_filter`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Final

from scrapy import Request

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.scheduler.adapter.request_codec import ENTRY
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from bigcrawl.redisdb.scripts.entries import Entry, EntryBatch
    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.spiders.list_source import ListSource

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # between two polls of an empty list
RETRY_S: Final = 1.0
SENT_POLL_S: Final = 0.05
PORTION: Final = 50  # entries handled in one turn of the event loop
BAD_SHOWN: Final = 5  # a list of garbage must not fill the log
PRIORITY_MAX: Final = (1 << 31) - 1


class ListReader:
    """Reads a list until the spider closes, or a finished crawl has got no entry for `max_idle_s` (0: never)."""

    def __init__(
        self,
        crawler: Crawler,
        frontier: Frontier,
        source: ListSource,
        make_requests: Callable[[bytes], object],
        max_idle_s: float,
    ) -> None:
        self._crawler = crawler
        self._stats = StatsBuffer(crawler)
        self._frontier = frontier
        self._intake = frontier.intake
        self._flow = frontier.flow
        self._source = source
        self._make_requests = make_requests
        self._max_idle_s = max_idle_s
        self._lease_s = frontier.config.frontier.lease_ms / 1000
        self._renew_s = self._lease_s / 3
        self._checks = link_checks_of(crawler)
        self._renew_at = 0.0
        self._offered: int | None = None
        self._bad = 0
        self._has_warned = False
        self._closing: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Read the list; raise nothing but a cancellation."""
        idle_since = monotonic()
        while not self._flow.is_ending:
            try:
                await self._flow.wait_for_room()
                batch = await self._source.take_next() if self._may_take() else None
                if not self._may_take():
                    idle_since = monotonic()  # there may be entries that must not be taken now
                if batch is not None:
                    await self._queue_requests(batch)
                    await self._until_sent()
                    idle_since = monotonic()
            except ConfigError as error:
                self._frontier.fail(error)
                return
            except BigcrawlError as error:
                self._warn_once(error)
                await asyncio.sleep(RETRY_S)
                continue
            except Exception:
                logger.exception("reading the list failed; taken entries are taken again")
                await asyncio.sleep(RETRY_S)
                continue
            self._has_warned = False
            if batch is None:
                if self._is_over(monotonic() - idle_since):
                    self._closing = asyncio.ensure_future(self._close_spider())  # which ends this task
                    return
                await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        """End the last batch if its requests were sent; call this after the node has stopped."""
        self._end_if_sent()
        await self._source.close()
        if self._bad > BAD_SHOWN:
            logger.warning("%(bad)d entries in all were skipped", {"bad": self._bad})

    async def _close_spider(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is closed already
            await self._crawler.engine.close_spider_async(reason="finished")

    def _may_take(self) -> bool:
        node = self._frontier.node
        return node is not None and node.parts.control.discovers and not self._flow.is_ending

    def _is_over(self, idle_s: float) -> bool:
        """Return whether the list was empty for long enough: at least a lease, so that a dead node's batch returns."""
        node, least_s = self._frontier.node, max(self._max_idle_s, self._lease_s + 2 * LOOK_S)
        return bool(self._max_idle_s and node and idle_s >= least_s and node.progress.is_finished)

    def _warn_once(self, error: BigcrawlError) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("the list cannot be read now: %(error)s; trying again", {"error": error})

    async def _queue_requests(self, batch: EntryBatch) -> None:
        self._renew_at = monotonic() + self._renew_s
        for at, entry in enumerate(batch.entries):
            if at % PORTION == 0:
                await asyncio.sleep(0)
                await self._flow.wait_for_room()
                await self._renew_if_due()
            try:
                requests = self._requests(entry)
            except Exception as error:  # noqa: BLE001 - the spider's own method may raise anything
                self._skip_entry(entry, str(error) or type(error).__name__)
                continue
            self._stats.inc_value("bigcrawl/entries/taken")
            for number, request in enumerate(requests):
                if self._checks.drops_request(request, starts=True):
                    continue
                request.meta[ENTRY] = f"{batch.name}.{batch.number}.{at}.{number}"
                self._intake.record_start_request(request)
                self._crawler.engine.crawl(request)
        self._offered = self._flow.offered()

    def _requests(self, entry: Entry) -> list[Request]:
        if entry.data is None:
            raise ValueError("it is too large")
        made = self._make_requests(entry.data)
        requests = [made] if isinstance(made, Request) else list(made) if isinstance(made, Iterable) else []
        for request in requests:
            if not isinstance(request, Request):
                raise TypeError(f"make_request_from_data returned a {type(request).__name__}")
        if entry.score and abs(entry.score) <= PRIORITY_MAX:
            requests = [one if one.priority else one.replace(priority=int(entry.score)) for one in requests]
        return requests

    def _skip_entry(self, entry: Entry, reason: str) -> None:
        self._bad += 1
        self._stats.inc_value("bigcrawl/entries/bad")
        logger.log(
            logging.WARNING if self._bad <= BAD_SHOWN else logging.DEBUG,
            "an entry of %(size)d bytes is left out: %(reason)s: %(text).80r",
            {"size": entry.size, "reason": reason[:200], "text": (entry.data or b"")[:80]},
        )

    async def _until_sent(self) -> None:
        while not self._end_if_sent() and not self._flow.is_ending:
            await asyncio.sleep(SENT_POLL_S)
            await self._renew_if_due()

    async def _renew_if_due(self) -> None:
        if monotonic() < self._renew_at:
            return
        self._renew_at = monotonic() + self._renew_s
        try:
            await self._source.renew_hold()
        except BigcrawlError as error:
            self._warn_once(error)

    def _end_if_sent(self) -> bool:
        if self._offered is not None and self._flow.are_sent(self._offered):
            self._offered = None
            self._source.end_batch()
        return self._offered is None
