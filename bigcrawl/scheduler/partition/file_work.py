"""The threads that read, write and sync partitions' files, with a check that they make progress.

Large writes pause between parts, so that merges yield the CPU to fetching. Source: PolyBot §4.2.

A hung disk, as with NFS, returns neither success nor an error. Then the node stops its heartbeat, and other nodes take
its partitions over. If the thread continues later, it writes into the directory of an old epoch, which is never read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import BigcrawlError, CorruptionError, OwnershipLostError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bigcrawl.clock import Clock
    from bigcrawl.drum.files import AnyPath

logger = logging.getLogger(__name__)

PORTION_S = 0.005  # of CPU before a rest; most files take less
RESTS = 5  # a rest takes this many times its part, so the loop loses a twelfth of a core that it shares
LOOK_S = 0.02  # between two checks whether the merge may still rest

T = TypeVar("T")

SYNCS_AT_ONCE = 8  # a disk writes the syncs of several threads together; one after another, each waits for its own


class ThrottledFiles(DiskFiles):
    """The file system, for a thread that shares its core with the loop; `may_rest` is called in that thread."""

    def __init__(self, may_rest: Callable[[], bool], record_sign: Callable[[], None] = lambda: None) -> None:
        self._may_rest = may_rest
        self._record_sign = record_sign

    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        super().write_new(path, self._with_rests(chunks))

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        super().write_at(path, offset, data, create=create)
        self._record_sign()

    def sync_file(self, path: AnyPath) -> None:
        super().sync_file(path)
        self._record_sign()

    def sync_directory(self, path: AnyPath) -> None:
        super().sync_directory(path)
        self._record_sign()

    def link(self, source: AnyPath, target: AnyPath) -> None:
        super().link(source, target)
        self._record_sign()

    def _with_rests(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        began_s = time.thread_time()
        for chunk in chunks:
            yield chunk
            self._record_sign()
            used_s = time.thread_time() - began_s
            if used_s >= PORTION_S:
                self._pause(RESTS * used_s)
                began_s = time.thread_time()

    def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while self._may_rest() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, LOOK_S))


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
