"""Samples of the crawl's figures, from its first node on: when one is due, who takes it, and how many are kept.

One node takes them: of the live ones the one whose id comes first. Others write at most while they do not know yet who
lives. That harms nobody, because a sample has the number of its time: two nodes write the same row.

A sample that Redis refuses or that is lost is not repeated; the next one follows in ten seconds. One that arrives late
is a row like any other, and is thinned out when its time has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.crawl.history import EVERY_MS, Sample, packed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.crawl.survey import Survey

FRESH: Final = 3_600_000 // EVERY_MS
"""How many numbers back from the newest sample every sample is kept: those of an hour."""

OLD_MAX: Final = 1_440
"""How many older samples are kept, and the first."""

ROWS_MAX: Final = FRESH + OLD_MAX + 1


class Samples:
    """Takes samples for one node.

    The sample that a node keeps at its start stands until ten seconds of the clock are over, unless it ends before.
    """

    def __init__(self, client: RedisClient, crawl: str, membership: Membership) -> None:
        self._client = client
        self._membership = membership
        self._key = CrawlKeys(crawl).history
        self._last = 0  # the number of the last sample that this node took, or left to another

    def __repr__(self) -> str:
        return f"<Samples last={self._last}>"

    async def take_if_due(self, survey: Callable[[], Awaitable[Survey]]) -> None:
        """Take a sample if the time of the last one is over and this node is the one to do it.

        Cost: nothing in most rounds; each ten seconds a survey and two commands on one node of the crawl.

        Raises:
            TransientStoreError: Redis is away; this sample is left out.
        """
        number = self._client.now_ms() // EVERY_MS
        if number == self._last:
            return
        self._last = number
        reports = self._membership.reports
        if min(reports, default=self._membership.node) == self._membership.node:
            await self.keep(await survey(), reports)

    async def keep(self, seen: Survey, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep a survey as the sample of this time, replacing another one.

        Raises:
            TransientStoreError: Redis is away. Nothing is raised if it refuses the sample, for want of memory.
        """
        time_ms = self._client.now_ms()
        self._last = time_ms // EVERY_MS
        rows = [("HSET", self._key, str(self._last), packed(Sample(seen, reports), time_ms)), ("HLEN", self._key)]
        try:
            _, length = await self._client.commands(rows)
            if length > ROWS_MAX:
                numbers = [int(name) for name in await self._client.command("HKEYS", self._key)]
                if gone := thinned_out(numbers):
                    await self._client.command("HDEL", self._key, *map(str, gone))
        except RedisRefusedError:
            return  # a full Redis has no room for this, and the next sample says as much


def thinned_out(numbers: Collection[int]) -> list[int]:
    """Return the numbers of the samples to delete, so that at most `ROWS_MAX` are left.

    All of the last hour stay, and the first of all. Of those between, the multiples of a step stay: the smallest power
    of two with which they are not too many. So what is deleted now is what a later call would delete, in whatever order
    calls arrive, and the spacing of old samples doubles when the crawl has become twice as long.
    """
    if not numbers:
        return []
    first, newest = min(numbers), max(numbers)
    old = [number for number in numbers if first < number <= newest - FRESH]
    step = 1
    while sum(number % step == 0 for number in old) > OLD_MAX:
        step *= 2
    return [number for number in old if number % step]
