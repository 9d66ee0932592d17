"""URLs that this node has sent to inboxes and owners have not merged yet: flow control for other nodes' partitions.

An owner that is stuck does not notice that its inbox grows; the senders do. Each sender keeps the ids of its own inbox
entries until the owner has published an id at or after them as merged. So no shared count is needed, which a Redis that
forgets would falsify. Owners are asked only when much has been sent.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.records.inbox_entry import id_order

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

logger = logging.getLogger(__name__)

PORTIONS = 8  # per partition on average; a portion is one entry in memory
PATIENCE = 10  # looks without room, at least a second apart, before a warning
NAMED_MAX = 5


class Unfolded:
    """The sent URLs by partition, oldest first: portions, each with the id of its last entry."""

    def __init__(self, crawl: str, partitions: int, urls_max: int) -> None:
        self._crawl = crawl
        self._urls_max = urls_max
        self._portion = max(1, urls_max // (PORTIONS * partitions))
        self._sent: dict[int, deque[tuple[str, int]]] = {}
        self._looks = 0  # in a row without room
        self.urls = 0

    def __repr__(self) -> str:
        return f"<Unfolded urls={self.urls} partitions={len(self._sent)}>"

    @property
    def is_full(self) -> bool:
        """Whether spiders should wait until owners have merged some."""
        return self.urls >= self._urls_max

    @property
    def wants_look(self) -> bool:
        """Whether enough sent URLs are unmerged that it is worth asking Redis how far the owners are."""
        return self.urls >= self._urls_max // 2

    def note(self, partition: int, entry_id: str, urls: int) -> None:
        """Count the URLs that were sent in this inbox entry. Cost: 0.3 us."""
        self.urls += urls
        portions = self._sent.get(partition)
        if portions is None:
            portions = self._sent[partition] = deque()
        if portions and portions[-1][1] < self._portion:
            portions[-1] = (entry_id, portions[-1][1] + urls)
        else:
            portions.append((entry_id, urls))

    def forget(self) -> None:
        """Redis may have forgotten entries, which are then never merged."""
        self._sent.clear()
        self.urls = 0

    async def look(self, client: RedisClient) -> None:
        """Look at what owners have merged.

        Raises:
            TransientStoreError: Redis is away.
        """
        partitions = list(self._sent)
        rows = [("HGET", partition_keys(self._crawl, partition).state, "folded") for partition in partitions]
        for partition, folded in zip(partitions, await client.commands(rows), strict=True):
            self._note_folded(partition, folded.decode() if folded else "0-0")
        self._looks = self._looks + 1 if self.is_full else 0
        if self._looks == PATIENCE:
            logger.warning(
                "spiders wait: %(urls)d URLs that this node has sent are not merged by the owners of partitions "
                "%(partitions)s; `scrapy frontier status` says who they are",
                {"urls": self.urls, "partitions": self._fullest()},
            )

    def _note_folded(self, partition: int, folded: str) -> None:
        portions = self._sent.get(partition)
        while portions and id_order(portions[0][0]) <= id_order(folded):
            self.urls -= portions.popleft()[1]
        if not portions:
            self._sent.pop(partition, None)

    def _fullest(self) -> str:
        urls = {partition: sum(count for _, count in portions) for partition, portions in self._sent.items()}
        first = sorted(urls, key=urls.__getitem__, reverse=True)[:NAMED_MAX]
        return ", ".join(map(str, first)) + (", ..." if len(urls) > NAMED_MAX else "")
