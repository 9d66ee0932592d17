"""Whether the thread that reads and writes partitions' files gets on: a lease says that its node does its work.

A disk that hangs, NFS most of all, answers neither with success nor with an error. A node that waits for it still
breathes, and would keep its partitions for ever while nobody folds them. So it stops saying that it lives, and others
take over. A large merge is long, and shows a sign of life with every portion it writes. What a thread that hung
writes when it wakes lies in the directory of an epoch that is over: nobody reads it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.exceptions import CorruptionError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from bigcrawl.clock import Clock
    from bigcrawl.exceptions import BigcrawlError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class FileWork:
    """What the thread is at; `run` and `note_sign` are called in it, the rest on the loop."""

    def __init__(self, clock: Clock, patience_ms: int) -> None:
        self._clock = clock
        self._patience_ms = patience_ms
        self._sign_ms: int | None = None  # its last sign of life, monotonic; None while it has nothing to do
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
        """The work gets on."""
        if threading.get_ident() == self._thread:  # while a partition is opened, others write too
            self._sign_ms = self._clock.monotonic_ms()

    @property
    def stands_still(self) -> bool:
        """Whether the work under way has not got on for too long."""
        sign_ms = self._sign_ms
        return sign_ms is not None and self._clock.monotonic_ms() - sign_ms >= self._patience_ms

    def look(self) -> bool:
        """As `stands_still`; log it once, and once more when it is over."""
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
    """The thread, as the loop asks it to do something."""

    def __init__(self, worker: Executor, file_work: FileWork) -> None:
        self._worker = worker
        self._file_work = file_work

    def __repr__(self) -> str:
        return f"<FileThread {self._file_work!r}>"

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work there; raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, partial(self._file_work.run, work))

    async def run_each(self, works: Iterable[Callable[[], T]]) -> list[T | BigcrawlError]:
        """Do one after the other; an error of files stands in its place, and the others are done all the same."""
        return await self.run(lambda: [_result_of(work) for work in works])


def _result_of(work: Callable[[], T]) -> T | BigcrawlError:
    try:
        return work()
    except (TransientStoreError, CorruptionError) as error:
        return error
