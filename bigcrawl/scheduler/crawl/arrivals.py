"""Notifies owners of entries for their partitions by a short stream; owners seldom look into all inboxes."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.assignment import read_ranges, write_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Value

PARTITIONS = b"p"
"""The partitions' numbers, such as `0-3,7`."""

KEPT = 200  # twenty nodes make a hundred in two seconds


class Arrivals:
    """The event `came` is set while there are notices that `take` has not returned."""

    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).arrivals
        self._untold: set[int] = set()
        self._heard = ""
        self._news: set[int] | None = set()
        self._is_read = self._is_being_read = False
        self.came = asyncio.Event()

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

    async def take(self) -> set[int] | None:
        """Return the partitions with new notices; None if some may have been missed. Asks Redis unless just read."""
        if not self._is_read and not self._is_being_read:
            with self.reading() as command:
                self.record_read(command, await self._client.command(*command))
        taken, self._news, self._is_read = self._news, set(), False
        self.came.clear()
        return taken

    @contextmanager
    def reading(self) -> Iterator[tuple[Value, ...]]:
        """Give the command that reads new notices, and the last one again; its reply is for `record_read`."""
        self._is_being_read = True
        try:
            yield "XRANGE", self._key, self._heard or "-", "+"
        finally:
            self._is_being_read = False

    def record_read(self, command: tuple[Value, ...], rows: Sequence[Any]) -> None:
        heard, self._heard, self._is_read = str(command[2]), rows[-1][0].decode() if rows else "", True
        if rows and rows[0][0].decode() == heard:
            rows = rows[1:]
        elif heard != "-" or len(rows) >= KEPT:  # some may have been removed or lost
            self._news = None
        if self._news is not None:
            self._news |= {partition for _, fields in rows for partition in read_ranges(fields[1].decode())}
        if self._news is None or self._news:
            self.came.set()
