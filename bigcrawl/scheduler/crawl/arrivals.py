"""Notifies owners of entries that other nodes put into their partitions.

Owners read a short stream of notices with each beat. An owner's slow look finds entries whose notice was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.assignment import read_ranges, write_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Value

PARTITIONS = b"p"
"""The partitions' numbers, such as `0-3,7`."""

KEPT = 200  # twenty nodes make a hundred in two seconds


class Arrivals:
    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).arrivals
        self._untold: set[int] = set()
        self._heard = ""

    def __repr__(self) -> str:
        return f"<Arrivals untold={len(self._untold)} heard={self._heard}>"

    def note(self, partition: int) -> None:
        self._untold.add(partition)

    async def tell(self, partitions: Iterable[int] = ()) -> None:
        told = self._untold.union(partitions)
        if not told:
            return
        self._untold = set()
        is_taken = False
        try:
            row = ("XADD", self._key, "MAXLEN", "~", KEPT, "*", PARTITIONS, write_ranges(told))
            [reply] = await self._client.commands_each([row])
            is_taken = not isinstance(reply, BigcrawlError)
        finally:
            if not is_taken:
                self._untold |= told

    async def hear(self) -> set[int] | None:
        """Return the partitions with new notices; None if some may have been missed."""
        return self.read(await self._client.command(*self.command))

    @property
    def command(self) -> tuple[Value, ...]:
        return "XRANGE", self._key, self._heard or "-", "+"

    def read(self, rows: Sequence[Any]) -> set[int] | None:
        heard, self._heard = self._heard, rows[-1][0].decode() if rows else ""
        if rows and rows[0][0].decode() == heard:
            rows = rows[1:]
        elif heard or len(rows) >= KEPT:  # some may have been removed or lost
            return None
        return {partition for _, fields in rows for partition in read_ranges(fields[1].decode())}
