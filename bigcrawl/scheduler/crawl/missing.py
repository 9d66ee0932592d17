"""Sets partitions with lost files apart, while the others continue.

    claimed, no files -> logged, marked in Redis, released -> looked for, now and then -> there -> claimed

The mark is the field `missing` of the partition's state; its next owner removes it. A node claims the partition when it
finds the files on its disk or in the store. Until then the crawl cannot finish. With BIGCRAWL_LOST_PARTITIONS=refetch a
node does not wait; with "stop" it ends.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import partition_keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient

logger = logging.getLogger(__name__)

MARK = "missing"
LOOK_MS = 60_000
REFETCH, STOP = "refetch", "stop"


class LostFilesError(ConfigError):
    """Redis knows that a partition has files, but they are neither on this disk nor in the store."""


class MissingPartitions:
    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        are_there: Callable[[Sequence[int]], Awaitable[set[int]]],
    ) -> None:
        self._name = config.crawl.name
        self._policy = config.store.lost_partitions
        self._client = client
        self._clock = clock
        self._are_there = are_there
        self._looks: dict[int, int] = {}
        self._said: set[int] = set()

    def __repr__(self) -> str:
        return f"<MissingPartitions {sorted(self._looks)}>"

    def set_apart(self, partition: int, error: LostFilesError) -> None:
        """Set a partition without files apart, or raise the error if the settings require it."""
        if self._policy == STOP:
            raise error
        self._looks[partition] = self._clock.monotonic_ms() + LOOK_MS
        if partition not in self._said:
            self._said.add(partition)
            logger.error(
                "partition %(partition)d is set apart: %(error)s. Its URLs wait; the other partitions continue",
                {"partition": partition, "error": error},
            )

    async def find_present(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions that may be claimed: not set apart, or with files again."""
        if self._policy == REFETCH:
            return list(partitions)
        new = [partition for partition in partitions if partition not in self._looks]
        states = [partition_keys(self._name, partition).state for partition in new]
        marks = await self._client.commands([("HGET", state, MARK) for state in states])
        self._looks |= {p: 0 for p, mark in zip(new, marks, strict=True) if int(mark or 0)}
        now_ms = self._clock.monotonic_ms()
        due = [p for p in partitions if self._looks.get(p, now_ms + 1) <= now_ms]
        there = await self._are_there(due) if due else set()
        for partition in due:
            if partition in there:
                del self._looks[partition]
                logger.info("the files of partition %(partition)d are back; it continues", {"partition": partition})
            else:
                self._looks[partition] = now_ms + LOOK_MS
        return [p for p in new if p not in self._looks] + sorted(there)
