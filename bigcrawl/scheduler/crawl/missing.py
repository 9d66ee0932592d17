"""Partitions whose files are nowhere left: a node sets them apart, and the others go on.

    claimed, no files -> logged, marked in Redis, released -> looked for, now and then -> there -> claimed

The mark is the field `missing` of the partition's state; its next owner removes it. The partition is claimed by a node
that has its files on disk, or finds them in the store. Until then its URLs wait in Redis and in its inbox, so the crawl
cannot finish. A node with BIGCRAWL_LOST_PARTITIONS=refetch does not wait, and one with "stop" ends.
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
LOOK_MS = 60_000  # between two looks for the files; each asks disk and store, and reads nothing
REFETCH, STOP = "refetch", "stop"


class LostFilesError(ConfigError):
    """Redis knows a partition as begun, and its files are neither on this disk nor in the store."""


class MissingPartitions:
    """The partitions that this node does not claim, because their files are nowhere.

    Args:
        config: of the node.
        client: of the crawl's Redis.
        clock: of the node.
        are_there: returns those of some partitions that have files here or in the store.
    """

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
        self._looks: dict[int, int] = {}  # when to look for the files of each, monotonic ms
        self._said: set[int] = set()

    def __repr__(self) -> str:
        return f"<MissingPartitions {sorted(self._looks)}>"

    def note(self, partition: int, error: LostFilesError) -> None:
        """Set a partition apart that has no files; the log says so once.

        Raises:
            LostFilesError: the settings say that this node shall end.
        """
        if self._policy == STOP:
            raise error
        self._looks[partition] = self._clock.monotonic_ms() + LOOK_MS
        if partition not in self._said:
            self._said.add(partition)
            logger.error(
                "partition %(partition)d is set apart: %(error)s. Its URLs wait, the others go on",
                {"partition": partition, "error": error},
            )

    async def find_present(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions that may be claimed: none has set them apart, or their files are there by now.

        Raises:
            TransientStoreError: Redis, the disk or the store failed.
        """
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
                logger.info("the files of partition %(partition)d are there again", {"partition": partition})
            else:
                self._looks[partition] = now_ms + LOOK_MS
        return [p for p in new if p not in self._looks] + sorted(there)
