"""Which partitions have got something from others than their owners: a node need not look at all of its own.

Whoever puts something into a partition of another node says so, in a short stream of the crawl. Owners read it with
each beat. What is not told, because a process died or Redis refused it, is found by the owner's next slow look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.assignment import read_ranges, write_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.client import RedisClient

PARTITIONS = b"p"
"""The field with the numbers of partitions, such as `0-3,7`."""

KEPT = 200  # entries: twenty nodes make a hundred in two seconds


class Arrivals:
    """What this process tells of other nodes' partitions, and hears of its own."""

    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).arrivals
        self._untold: set[int] = set()
        self._heard = "0-0"  # the last entry

    def __repr__(self) -> str:
        return f"<Arrivals untold={len(self._untold)} heard={self._heard}>"

    def note(self, partition: int) -> None:
        """Something was put into the partition."""
        self._untold.add(partition)

    async def tell(self, partitions: Iterable[int] = ()) -> None:
        """Tell the owners of these partitions, and of those that were noted. A Redis that is full refuses it.

        Raises:
            TransientStoreError: Redis is away; the owners may not have been told.
        """
        self._untold.update(partitions)
        if self._untold:
            row = ("XADD", self._key, "MAXLEN", "~", KEPT, "*", PARTITIONS, write_ranges(self._untold))
            self._untold = set()
            await self._client.commands_each([row])

    async def hear(self) -> set[int] | None:
        """Return the partitions that were told of since the last time; None if some may have been missed.

        Raises:
            TransientStoreError: Redis is away.
        """
        rows = await self._client.command("XRANGE", self._key, f"({self._heard}", "+", "COUNT", KEPT)
        if rows:
            self._heard = rows[-1][0].decode()
        if len(rows) >= KEPT:
            return None
        return {partition for _, fields in rows for partition in read_ranges(fields[1].decode())}
