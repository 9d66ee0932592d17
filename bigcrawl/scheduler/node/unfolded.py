"""URLs sent to inboxes and not yet merged, by entry: flow control for partitions whose owner is stuck."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.records.inbox_entry import id_order

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

logger = logging.getLogger(__name__)

PORTIONS = 8
PATIENCE = 10  # looks without room, at least a second apart
NAMED_MAX = 5


class Unfolded:
    """The sent URLs of each partition in portions, oldest first, each with the id of its last inbox entry."""

    def __init__(self, crawl: str, partitions: int, urls_max: int) -> None:
        self._crawl = crawl
        self._urls_max = urls_max
        self._portion = max(1, urls_max // (PORTIONS * partitions))
        self._sent: dict[int, deque[tuple[str, int]]] = {}
        self._looks = 0
        self.urls = 0

    def __repr__(self) -> str:
        return f"<Unfolded urls={self.urls} partitions={len(self._sent)}>"

    @property
    def is_full(self) -> bool:
        """Whether spiders should wait until owners have merged some."""
        return self.urls >= self._urls_max

    @property
    def should_poll(self) -> bool:
        """Whether enough URLs are unmerged to read the owners' progress."""
        return self.urls >= self._urls_max // 2

    def note(self, partition: int, entry_id: str, urls: int) -> None:
        self.urls += urls
        portions = self._sent.get(partition)
        if portions is None:
            portions = self._sent[partition] = deque()
        if portions and portions[-1][1] < self._portion:
            portions[-1] = (entry_id, portions[-1][1] + urls)
        else:
            portions.append((entry_id, urls))

    def forget(self) -> None:
        """Forget all entries: Redis may have lost some, which are then never merged."""
        self._sent.clear()
        self.urls = 0

    async def look(self, client: RedisClient) -> None:
        partitions = list(self._sent)
        rows = [("HGET", partition_keys(self._crawl, partition).state, "folded") for partition in partitions]
        for partition, folded in zip(partitions, await client.commands(rows), strict=True):
            self._record_folded(partition, folded.decode() if folded else "0-0")
        self._looks = self._looks + 1 if self.is_full else 0
        if self._looks == PATIENCE:
            logger.warning(
                "spiders wait: %(urls)d URLs that this node has sent are not merged by the owners of partitions "
                "%(partitions)s; `scrapy frontier status` names them",
                {"urls": self.urls, "partitions": self._fullest()},
            )

    def _record_folded(self, partition: int, folded: str) -> None:
        portions = self._sent.get(partition)
        while portions and id_order(portions[0][0]) <= id_order(folded):
            self.urls -= portions.popleft()[1]
        if not portions:
            self._sent.pop(partition, None)

    def _fullest(self) -> str:
        urls = {partition: sum(count for _, count in portions) for partition, portions in self._sent.items()}
        first = sorted(urls, key=urls.__getitem__, reverse=True)[:NAMED_MAX]
        return ", ".join(map(str, first)) + (", ..." if len(urls) > NAMED_MAX else "")
