"""What is said to a crawl while it runs, and how each node hears of it: one Redis hash, read a few times a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.owned_partition import pairs_of

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

SPEED = "speed"
"""The field that has the text of a speed, see `bigcrawl.politeness.speed_plan`."""


class Said:
    """The fields of the hash, and the time, as they were read last."""

    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).control
        self.server_ms = 0
        self.fields: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<Said {sorted(self.fields)}>"

    async def read(self) -> None:
        """Read them.

        Raises:
            TransientStoreError: Redis is away; they stay as they are.
        """
        fields, (seconds, micros) = await self._client.commands([("HGETALL", self._key), ("TIME",)])
        self.fields = {name.decode("utf-8", "replace"): value for name, value in pairs_of(fields)}
        self.server_ms = 1000 * int(seconds) + int(micros) // 1000
