"""Samples of the crawl's figures, taken by the live node with the lowest id, and numbered by their time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.redisdb.keys import KNOWN, CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.crawl.history import EVERY_MS, Sample, packed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.crawl.survey import Survey

FRESH: Final = 3_600_000 // EVERY_MS
OLD_MAX: Final = 1_440
ROWS_MAX: Final = FRESH + OLD_MAX + 1


class Samples:
    def __init__(
        self,
        client: RedisClient,
        crawl: str,
        membership: Membership,
        spider: str = "",
        is_finished: Callable[[], bool] = bool,
        is_paused: Callable[[], bool] = bool,
    ) -> None:
        self._client = client
        self._crawl = crawl
        self._spider = spider
        self._is_finished = is_finished
        self._is_paused = is_paused
        self._membership = membership
        self._key = CrawlKeys(crawl).history
        self._last = 0

    def __repr__(self) -> str:
        return f"<Samples last={self._last}>"

    async def take_if_due(self, survey: Callable[[], Awaitable[Survey]]) -> None:
        number = self._client.now_ms() // EVERY_MS
        if number == self._last:
            return
        self._last = number
        reports = self._membership.reports
        if min(reports, default=self._membership.node) == self._membership.node:
            await self.keep(await survey(), reports)

    async def keep(self, seen: Survey, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Store a survey as the sample of this time, and in the list of this Redis's crawls, unless Redis is full."""
        time_ms = self._client.now_ms()
        self._last = time_ms // EVERY_MS
        rows = [
            ("HSET", self._key, str(self._last), packed(Sample(seen, reports, self._membership.made_by_all), time_ms)),
            ("HLEN", self._key),
        ]
        try:
            known = json.dumps(self._known_data(seen, reports, time_ms))
            _, length, _ = await self._client.commands([*rows, ("HSET", KNOWN, self._crawl, known)])
            if length > ROWS_MAX:
                numbers = [int(name) for name in await self._client.command("HKEYS", self._key)]
                if gone := samples_to_drop(numbers):
                    await self._client.command("HDEL", self._key, *map(str, gone))
        except RedisRefusedError:
            return

    def _known_data(self, seen: Survey, reports: Mapping[str, Mapping[str, Any]], time_ms: int) -> dict[str, Any]:
        return {
            "spider": self._spider,
            "nodes": len(reports),
            "is_paused": self._is_paused(),
            "is_finished": self._is_finished(),
            "pages": seen.pages,
            "waiting": seen.waiting,
            "at_ms": time_ms,
        }


def samples_to_drop(numbers: Collection[int]) -> list[int]:
    """Return the samples to delete above `ROWS_MAX`; the first, those of the last hour and every 2^n-th stay."""
    if not numbers:
        return []
    first, newest = min(numbers), max(numbers)
    old = [number for number in numbers if first < number <= newest - FRESH]
    step = 1
    while sum(number % step == 0 for number in old) > OLD_MAX:
        step *= 2
    return [number for number in old if number % step]
