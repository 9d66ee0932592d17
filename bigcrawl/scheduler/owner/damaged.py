"""Sets partitions with damaged files apart, and claims them again once repaired.

    damage found -> logged, marked in Redis, drained, released -> files checked, less and less often -> sound -> claimed

The field `damaged` of the partition's state makes nodes check all its files before claiming it, so that they do not
fail one after another. Its URLs wait, so the crawl cannot finish.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, CorruptionError, TransientStoreError
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.partition.directory import verify_newest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl.clock import Clock
    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient

logger = logging.getLogger(__name__)

LOOK_MS, LOOK_MS_MAX = 60_000, 3_600_000  # between two checks of all files; doubles each time


def is_damage(error: object) -> bool:
    if isinstance(error, TransientStoreError):
        return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EIO
    return isinstance(error, CorruptionError)


class DamagedPartitions:
    def __init__(self, config: CrawlConfig, client: RedisClient, clock: Clock) -> None:
        self._config = config
        self._client = client
        self._clock = clock
        self._looks: dict[int, int] = {}
        self._waits: dict[int, int] = {}
        self._checked: set[int] = set()  # found sound; may be claimed in spite of the mark
        self._marked: set[int] = set()
        self._look: asyncio.Task[None] | None = None

    @property
    def is_checking(self) -> bool:
        return self._look is not None and not self._look.done()

    def set_apart(self, partition: int, error: BigcrawlError) -> None:
        logger.error(
            "partition %(partition)d is set apart: %(error)s; its URLs wait, and the other partitions continue. "
            "`scrapy frontier "
            "repair` shows the damage and repairs it as far as possible: the partition then continues by itself, or "
            "at the next start",
            {"partition": partition, "error": error},
        )
        self._schedule_check(partition)

    async def find_sound(self, partitions: Iterable[int]) -> list[int]:
        """Return the partitions that may be claimed: not set apart, or sound again."""
        wanted = sorted(set(partitions))
        marks = await self._client.commands(
            [("HGET", partition_keys(self._config.name, partition).state, "damaged") for partition in wanted]
        )
        marked = {p for p, mark in zip(wanted, marks, strict=True) if int(mark or 0)}
        self._check_repaired(marked)
        new = [p for p in wanted if p not in self._looks]
        marked &= set(new)
        self._looks |= dict.fromkeys(marked - self._checked, 0)
        self._checked -= set(new)
        if due := [p for p in partitions if self._looks.get(p, 1 << 62) <= self._clock.monotonic_ms()]:
            self._begin_check(due[0])
        return [p for p in new if p not in self._looks]

    async def close(self) -> None:
        if self._look is not None:
            self._look.cancel()
            await asyncio.gather(self._look, return_exceptions=True)

    def _check_repaired(self, marked: set[int]) -> None:
        for partition in (self._marked - marked) & self._looks.keys():
            self._looks[partition] = 0
        self._marked = marked & self._looks.keys()

    def _begin_check(self, partition: int) -> None:
        if not self.is_checking:
            self._look = asyncio.create_task(self._check_files(partition))

    async def _check_files(self, partition: int) -> None:
        problem = await asyncio.to_thread(_problem_of, self._config.crawl_dir / f"p{partition:04d}")
        if problem is not None:
            self.set_apart(partition, problem)
            return
        logger.info("partition %(partition)d is sound again and continues", {"partition": partition})
        del self._looks[partition]
        self._checked.add(partition)

    def _schedule_check(self, partition: int) -> None:
        wait_ms = min(2 * self._waits.get(partition, LOOK_MS // 2), LOOK_MS_MAX)
        self._waits[partition] = wait_ms
        self._looks[partition] = self._clock.monotonic_ms() + wait_ms


def _problem_of(directory: Path) -> BigcrawlError | None:
    try:
        return next(iter(verify_newest(directory)), None)
    except BigcrawlError as error:
        return error
