"""Writes exchanges into WARC files in order, and keeps each until it is safe.

If the disk accepts no more:

| state | entered when | meanwhile |
|---|---|---|
| flushed | the crawl begins; the last waiting exchange is written | exchanges are written as they come |
| stuck | a write or a sync fails, which is logged once | the engine is paused; the oldest is tried every second |

While stuck, only exchanges that were in flight when the write failed wait in memory.

A page is safe once it is on the medium, if syncs are configured, and otherwise once the kernel has it. A hanging disk
is reported once, and nothing counts as safe meanwhile.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import CallLaterResult, call_later

from bigcrawl.exceptions import TransientStoreError

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.pipelines.engine_pause import EnginePause
    from bigcrawl.stats_buffer import StatsBuffer
    from bigcrawl.warc.group_commit import GroupCommit
    from bigcrawl.warc.records import Conversion, Exchange, Note
    from bigcrawl.warc.segments import WarcWriter, WrittenRecords

logger = logging.getLogger(__name__)

HANGING_MS = 10_000
_NO_ROOM = "the disk takes no more pages"


class PageWrites:
    def __init__(
        self,
        directory: Path,
        writer: WarcWriter,
        disk: GroupCommit,
        pause: EnginePause,
        stats_buffer: StatsBuffer,
        retry_seconds: float,
    ) -> None:
        self._directory = directory
        self._writer = writer
        self._disk = disk
        self._pause = pause
        self._stats_buffer = stats_buffer
        self._retry_seconds = retry_seconds
        self._unwritten: deque[Exchange | Note | Conversion] = deque()
        self._unsafe: deque[Exchange | Note | Conversion] = deque()  # written, and kept until a sync has confirmed them
        self._last: WrittenRecords | None = None
        self._is_hanging = False
        self._retry: CallLaterResult | None = None

    def is_flushed(self) -> bool:
        """Return whether everything downloaded so far was written. Until then, hand out no requests."""
        self._check_syncs()
        return not self._unwritten

    @property
    def pages(self) -> int:
        return self._disk.written + len(self._unwritten)

    @property
    def safe_pages(self) -> int:
        """How many pages and notes, counted from the first, are on disk without a gap."""
        return self._disk.safe_count

    def hurry(self) -> None:
        self._disk.hurry()

    @property
    def unwritten_count(self) -> int:
        return len(self._unwritten)

    def end(self) -> None:
        """Write the waiting exchanges if possible; write nothing after that."""
        self._try_again()
        # That call may have set the timer again, which would write after closing.
        self._cancel_retry()
        if self._unwritten:
            logger.error(
                "%(count)d exchanges are not stored: there is no room in %(directory)s",
                {"count": len(self._unwritten), "directory": self._directory},
            )

    def write(self, item: Exchange | Note | Conversion) -> WrittenRecords | None:
        """Write an item and return its record, or keep it until there is room (None). Other errors are raised."""
        self._unwritten.append(item)
        # If others wait, so does this one; the timer is running.
        if len(self._unwritten) == 1:
            self._write_waiting()
        return None if self._unwritten else self._last

    def _write_waiting(self) -> None:
        while self._unwritten:
            try:
                written = self._writer.write(self._unwritten[0])
            except TransientStoreError as error:
                self._stats_buffer.inc_value("bigcrawl/warc/write_errors")
                self._wait_for_room(error)
                return
            except Exception:
                # Not the disk's fault, so a retry would fail too: it must not hold up the others.
                self._record_written()
                raise
            self._record_written()
            self._stats_buffer.inc_value("bigcrawl/warc/records", written.records)
            self._stats_buffer.inc_value("bigcrawl/warc/bytes", written.size)
            if written.origin is not None:
                self._stats_buffer.inc_value("bigcrawl/warc/copies")
            self._last = written
        self._resume()

    def _record_written(self) -> None:
        item = self._unwritten.popleft()
        self._disk.record_written()
        if self._disk.interval_s is not None:
            self._unsafe.append(item)
            self._forget_safe()

    def _forget_safe(self) -> None:
        unsafe = self._disk.written - self._disk.safe_count
        while len(self._unsafe) > unsafe:
            self._unsafe.popleft()

    def _check_syncs(self) -> None:
        """Check syncs: after a failed one, write all that it should have covered into a new file."""
        if (error := self._disk.error) is not None:
            self._forget_safe()
            self._disk.begin_again()
            self._writer.give_up_file()
            self._unwritten.extendleft(reversed(self._unsafe))
            self._unsafe.clear()
            self._stats_buffer.inc_value("bigcrawl/warc/write_errors")
            self._wait_for_room(TransientStoreError(f"{self._directory} cannot be written: {error}"))
        is_hanging = self._disk.late_ms > HANGING_MS
        if is_hanging and not self._is_hanging:
            logger.error(
                "%(directory)s has not answered for %(seconds)d s; nothing is acknowledged until it does",
                {"directory": self._directory, "seconds": HANGING_MS // 1000},
            )
        self._is_hanging = is_hanging

    def _wait_for_room(self, error: TransientStoreError) -> None:
        if self._retry is None:
            logger.error("%(error)s; the crawl pauses until there is room", {"error": error})
            self._pause.pause_for(_NO_ROOM)
        self._retry_later()

    def _try_again(self) -> None:
        try:
            self._write_waiting()
        except Exception:
            self._stats_buffer.inc_value("bigcrawl/warc/write_errors")
            logger.exception("an exchange is not stored")
            self._retry_later()

    def _retry_later(self) -> None:
        self._cancel_retry()
        self._retry = call_later(self._retry_seconds, self._try_again)

    def _cancel_retry(self) -> None:
        if self._retry:
            self._retry.cancel()
            self._retry = None

    def _resume(self) -> None:
        if self._retry is None:
            return
        self._cancel_retry()
        logger.info("%(directory)s has room again; the crawl continues", {"directory": self._directory})
        self._pause.resume_for(_NO_ROOM)
