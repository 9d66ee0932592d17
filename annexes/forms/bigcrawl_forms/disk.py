"""The threads that read and write the state of forms, so that no disk holds up the event loop.

What a full or broken disk refuses is tried again each second, and a disk that does not answer is waited for. Either is
logged once. The pages that need the disk wait in memory meanwhile, BIGCRAWL_IN_PROCESS_MAX at most, because none of
them is acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

T = TypeVar("T")

HANGING_S: Final = 10.0
RETRY_S: Final = 1.0


class StateDisk:
    """The disk of a directory. It does one thing at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._is_used = asyncio.Lock()
        self._troubles = 0

    async def do(self, work: Callable[[], T]) -> T:
        """Do work in a thread, and again each second as long as it raises an OSError."""
        doing = asyncio.ensure_future(self._try(work))
        try:
            await asyncio.wait({doing}, timeout=HANGING_S)
            if doing.done() and not isinstance(doing.exception(), OSError):
                return doing.result()
            with self._in_trouble(str(doing.exception()) if doing.done() else f"no answer for {HANGING_S:g} s"):
                while True:
                    try:
                        return await doing
                    except OSError:
                        await asyncio.sleep(RETRY_S)
                        doing = asyncio.ensure_future(self._try(work))
        finally:
            doing.cancel()

    async def _try(self, work: Callable[[], T]) -> T:
        async with self._is_used:
            done: Future[T] = Future()
            done.set_running_or_notify_cancel()
            # A daemon: the process can end while its disk hangs.
            threading.Thread(target=_do_work, args=(done, work), name="bigcrawl-forms", daemon=True).start()
            return await asyncio.wrap_future(done)

    @contextlib.contextmanager
    def _in_trouble(self, problem: str) -> Iterator[None]:
        self._troubles += 1
        if self._troubles == 1:
            logger.error(
                "the state of forms in %(directory)s cannot be used: %(problem)s; forms, their results and records "
                "wait until it can, and nothing of them is acknowledged: make room, or stop the crawl and name another "
                "directory with -a forms_dir=",
                {"directory": self._directory, "problem": problem},
            )
        try:
            yield
            if self._troubles == 1:
                logger.info("the state of forms in %(directory)s can be used again", {"directory": self._directory})
        finally:
            self._troubles -= 1


def _do_work(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - for who waits for it
        done.set_exception(error)
