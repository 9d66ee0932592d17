"""The threads that read, write and sync partitions' files, with a check that they make progress.

A hung disk, as with NFS, returns neither success nor an error. Then the node stops its heartbeat, and other nodes take
its partitions over. If the thread continues later, it writes into the directory of an old epoch, which is never read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.exceptions import CorruptionError, OwnershipLostError, TransientStoreError
from bigcrawl.scheduler.partition.yielding_files import ThrottledFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.clock import Clock
    from bigcrawl.exceptions import BigcrawlError

logger = logging.getLogger(__name__)

T = TypeVar("T")

SYNCS_AT_ONCE = 8  # a disk writes the syncs of several threads together; one after another, each waits for its own


class FileWork:
    """The current work of the thread. `run` and `record_sign` are called in the thread, the rest on the loop."""

    def __init__(self, clock: Clock, patience_ms: int) -> None:
        self._clock = clock
        self._patience_ms = patience_ms
        self._sign_ms: int | None = None  # last progress, on the monotonic clock; None while idle
        self._threads: set[int] = set()
        self._is_reported = False

    def run(self, work: Callable[[], T]) -> T:
        self._sign_ms = self._clock.monotonic_ms()
        try:
            return self.run_part(work)
        finally:
            self._sign_ms = None

    def run_part(self, work: Callable[[], T]) -> T:
        """Do a part of the current work in this thread. Its progress counts as that of the work."""
        thread = threading.get_ident()
        self._threads.add(thread)
        try:
            return work()
        finally:
            self._threads.discard(thread)

    def record_sign(self) -> None:
        if threading.get_ident() in self._threads:  # while a partition is opened, other threads write too
            self._sign_ms = self._clock.monotonic_ms()

    @property
    def stands_still(self) -> bool:
        sign_ms = self._sign_ms
        return sign_ms is not None and self._clock.monotonic_ms() - sign_ms >= self._patience_ms

    def check_for_hang(self) -> bool:
        stands_still = self.stands_still
        if stands_still and not self._is_reported:
            logger.error(
                "the state's disk has not answered for %(seconds)d s: this node takes no more URLs and leaves its "
                "partitions to other nodes until it answers",
                {"seconds": self._patience_ms // 1000},
            )
        elif self._is_reported and not stands_still:
            logger.info("the state's disk answers again: the node continues")
        self._is_reported = stands_still
        return stands_still


class FileThread:
    def __init__(self, clock: Clock, patience_ms: int, may_rest: Callable[[], bool]) -> None:
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="bigcrawl-fold")
        self._syncing = ThreadPoolExecutor(SYNCS_AT_ONCE, thread_name_prefix="bigcrawl-sync")
        self.work = FileWork(clock, patience_ms)
        self.files = ThrottledFiles(may_rest, self.work.record_sign)

    def close(self, *, wait: bool) -> None:
        self._worker.shutdown(wait=wait)
        self._syncing.shutdown(wait=wait)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, partial(self.work.run, work))

    async def run_each(self, works: Iterable[Callable[[], T]]) -> list[T | BigcrawlError]:
        return await self.run(lambda: [_result_of(work) for work in works])

    async def run_together(self, works: Iterable[Callable[[], T]]) -> list[T | BigcrawlError]:
        """Run pieces of work that mostly wait for the disk, each on its own files, several at a time."""
        parts = [partial(self.work.run_part, partial(_result_of, work)) for work in works]

        def run_all() -> list[T | BigcrawlError]:
            begun = [self._syncing.submit(part) for part in parts]
            wait(begun)  # no work outlives the work that it is a part of
            return [each.result() for each in begun]

        return await self.run(run_all)


def _result_of(work: Callable[[], T]) -> T | BigcrawlError:
    try:
        return work()
    except (TransientStoreError, CorruptionError, OwnershipLostError) as error:
        return error
