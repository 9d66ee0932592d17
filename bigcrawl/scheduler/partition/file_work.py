"""The thread that reads and writes partitions' files, and whether it makes progress.

A disk that hangs, as NFS may, returns neither success nor an error. The node's loop would go on and renew the leases
of partitions that nobody folds. So the node stops its heartbeat, and others take its partitions over. A large merge
takes long, but reports progress with every portion it writes. If a thread that hung goes on later, it writes into the
directory of an old epoch, which nobody reads any more.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.exceptions import CorruptionError, OwnershipLostError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from bigcrawl.clock import Clock
    from bigcrawl.exceptions import BigcrawlError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class FileWork:
    """The work that the thread does now. `run` and `note_sign` are called in the thread, the rest on the loop."""

    def __init__(self, clock: Clock, patience_ms: int) -> None:
        self._clock = clock
        self._patience_ms = patience_ms
        self._sign_ms: int | None = None  # last progress, on the monotonic clock; None while it has nothing to do
        self._thread = 0
        self._is_reported = False

    def __repr__(self) -> str:
        return f"<FileWork stands_still={self.stands_still}>"

    def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work."""
        self._sign_ms, self._thread = self._clock.monotonic_ms(), threading.get_ident()
        try:
            return work()
        finally:
            self._sign_ms, self._thread = None, 0

    def note_sign(self) -> None:
        """Record that the work has made progress."""
        if threading.get_ident() == self._thread:  # while a partition is opened, others write too
            self._sign_ms = self._clock.monotonic_ms()

    @property
    def stands_still(self) -> bool:
        """Whether the current work has made no progress for too long."""
        sign_ms = self._sign_ms
        return sign_ms is not None and self._clock.monotonic_ms() - sign_ms >= self._patience_ms

    def look(self) -> bool:
        """Return `stands_still`, and log when it begins and when it is over."""
        stands_still = self.stands_still
        if stands_still and not self._is_reported:
            logger.error(
                "the state's disk has not answered for %(seconds)d s: this node takes nothing more, and leaves its "
                "partitions to others until it does",
                {"seconds": self._patience_ms // 1000},
            )
        elif self._is_reported and not stands_still:
            logger.info("the state's disk answers again: the node goes on")
        self._is_reported = stands_still
        return stands_still


class FileThread:
    """Runs work in the thread, for the loop."""

    def __init__(self, worker: Executor, file_work: FileWork) -> None:
        self._worker = worker
        self._file_work = file_work

    def __repr__(self) -> str:
        return f"<FileThread {self._file_work!r}>"

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work. Raises what the work raises."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, partial(self._file_work.run, work))

    async def run_each(self, works: Iterable[Callable[[], T]]) -> list[T | BigcrawlError]:
        """Do several pieces of work in turn. If the files of one fail, the error is its result; the others are done."""
        return await self.run(lambda: [_result_of(work) for work in works])


def _result_of(work: Callable[[], T]) -> T | BigcrawlError:
    try:
        return work()
    except (TransientStoreError, CorruptionError, OwnershipLostError) as error:
        return error
