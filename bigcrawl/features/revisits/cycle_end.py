"""Finds the end of each cycle, and says so: to a file, a signal and a command.

The live node that joined first looks, so that one that joins later never takes over from it. A cycle has ended once
nothing waits but visits of later cycles, in two passes without a change between them; at the latest when the next one
begins, and then it is not complete.

The crawl record has the last ended cycle. It is written after the command, so a node that dies meanwhile leaves the
announcement to the next one: a cycle is announced at least once, and more often only after a death or when two nodes
do not know each other yet. While a cycle is announced, the crawl does not end. A lost write announces it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import signal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.clock import time_text
from bigcrawl.private_files import whole_file
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.crawl.alike import SINCE
from bigcrawl.scheduler.crawl.survey import has_starts_under_way, survey

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.features.revisits.cycle_plan import CyclePlan
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.handout.observers import NodeSide

logger = logging.getLogger(__name__)

FIELD: Final = "cycle"
FILE_NAME: Final = "cycle.json"
NEXT_VISIT: Final = "next_visit_s"
SLOWNESS: Final = 20  # a look may take one part in so many of the time between two
TIME_S_MIN: Final = 3_600.0  # that the command has, however short the cycles are
_AT_ONCE_S: Final = 2  # visits of one cycle become due within this time


class CycleRecord(NamedTuple):
    """The last ended cycle; `ended` and `pages` are the crawl's totals at that time."""

    number: int
    until_s: int
    """When the next cycle begins."""
    ended_s: int
    ended: int
    pages: int


class CycleEnds:
    def __init__(self, side: NodeSide, plan: CyclePlan, command: str, directory: Path) -> None:
        self._side = side
        self._plan = plan
        self._command = shlex.split(command)
        self._path = directory / FILE_NAME
        self._key = CrawlKeys(side.config.crawl.name).crawl
        self._before: tuple[int, ...] | None = None
        self._job: asyncio.Task[None] | None = None
        self._unrecorded: CycleRecord | None = None
        self._look_ms = 0
        self._wants_look = False
        self._announced: int | None = None  # URLs that had ended when nothing was left to announce

    def __repr__(self) -> str:
        return f"<CycleEnds {self._path} announced={self._announced}>"

    def delay_end(self, ended: int) -> bool:
        """Whether this node must still announce the crawl's last cycle; `ended` counts the ended URLs."""
        self._wants_look = True
        return self._is_leader() and ended != self._announced

    async def send(self) -> None:
        if self._job is not None:
            if not self._job.done():
                return
            self._job.result()
            self._job = None
        if self._unrecorded is not None and not await self._record_end(self._unrecorded):
            return
        self._unrecorded = None
        clock = self._side.clock
        if not self._is_leader() or clock.monotonic_ms() < self._look_ms:
            return
        begun_ms = clock.monotonic_ms()
        try:
            await self._check_for_end(self._side.client.now_ms() // 1000)
        finally:
            self._look_ms = clock.monotonic_ms() + SLOWNESS * (clock.monotonic_ms() - begun_ms)

    async def close(self) -> None:
        if self._job is not None:
            self._job.cancel()
            await asyncio.gather(self._job, return_exceptions=True)

    async def _record_end(self, record: CycleRecord) -> bool:
        """Record an announced end; return False if Redis is full. After a long pause, another node may be ahead."""
        try:
            if (await self._last_record(record.ended_s)).number < record.number:
                await self._write(record)
        except RedisRefusedError:
            return False
        return True

    def _is_leader(self) -> bool:
        reports, node = self._side.reports(), self._side.node
        return min(((report.get(SINCE, 0), name) for name, report in reports.items()), default=(0, node))[1] == node

    async def _check_for_end(self, now_s: int) -> None:
        record = await self._last_record(now_s)
        if now_s < record.until_s and not self._wants_look:
            return
        self._wants_look = False
        side = self._side
        seen = await survey(side.client, side.config.crawl.name, side.partitions)
        if seen.counts["ended"] == record.ended:
            self._announced = record.ended
            return
        _, next_s = self._plan.around(record.until_s)
        is_done = await self._is_done(seen, now_s)
        is_late = now_s >= next_s
        if is_done and self._before != seen.progress:
            self._before = seen.progress
            self._wants_look = True
        elif is_done or is_late:
            until_s = max(next_s, self._plan.around(now_s)[0 if is_late and not is_done else 1])
            after = CycleRecord(record.number + 1, until_s, now_s, seen.counts["ended"], seen.pages)
            self._before = None
            self._job = asyncio.create_task(self._announce(record, after, seen, is_complete=is_done))

    async def _is_done(self, seen: Survey, now_s: int) -> bool:
        side, name = self._side, self._side.config.crawl.name
        hosts = seen.hosts_ready + seen.hosts_waiting + seen.hosts_busy
        moving = seen.urls_queued or seen.urls_taken or seen.inboxes_unfolded or seen.batches_pending
        if hosts or moving or seen.rows_untold or seen.urls_disk > seen.counts["revisits"]:
            return False
        keys = [partition_keys(name, partition).state for partition in range(side.partitions)]
        due = await side.client.commands([("HGET", key, NEXT_VISIT) for key in keys])
        # A partition that has not begun the next cycle still shows the time when it begins.
        if any(0 < int(value or 0) <= now_s + _AT_ONCE_S for value in due):
            return False
        return not await has_starts_under_way(side.client, self._key)

    async def _announce(self, before: CycleRecord, after: CycleRecord, seen: Survey, *, is_complete: bool) -> None:
        event = {
            "crawl": self._side.config.crawl.name,
            "cycle": after.number,
            "began": time_text(before.until_s * 1000, "T"),
            "ended": time_text(after.ended_s * 1000, "T"),
            "complete": is_complete,
            "urls": max(0, after.ended - before.ended),
            "pages": max(0, after.pages - before.pages),
            "waiting": max(0, seen.waiting - seen.counts["revisits"]),
            "next": time_text(after.until_s * 1000, "T"),
        }
        logger.info(
            "cycle %(cycle)d ended, %(how)s: %(urls)d URLs",
            {**event, "how": "complete" if is_complete else f"with {event['waiting']} URLs left"},
        )
        try:
            await asyncio.to_thread(self._write_file, event)
        except OSError as error:
            logger.error(  # noqa: TRY400 - it says all
                "%(file)s cannot be written: %(error)s", {"file": self._path, "error": error}
            )
        self._side.announce("cycle_ended", event)
        if self._command:
            await self._run_command(event, time_s=2 * (after.until_s - before.until_s))
        self._unrecorded = after

    def _write_file(self, event: dict[str, Any]) -> None:
        with whole_file(self._path) as file:
            file.write(json.dumps(event).encode() + b"\n")

    async def _run_command(self, event: dict[str, Any], time_s: float) -> None:
        """Run the command with the event on standard input, in a new session, for at most `time_s`; log a failure."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            logger.error(  # noqa: TRY400 - it says all
                "BIGCRAWL_CYCLE_COMMAND cannot be run: %(error)s", {"error": error}
            )
            return
        try:
            await asyncio.wait_for(process.communicate(json.dumps(event).encode() + b"\n"), max(time_s, TIME_S_MIN))
        except TimeoutError:
            logger.error(  # noqa: TRY400 - it says all
                "BIGCRAWL_CYCLE_COMMAND still ran after two cycles, and is killed"
            )
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
        if process.returncode:
            logger.error(
                "BIGCRAWL_CYCLE_COMMAND failed with status %(status)d at the end of cycle %(cycle)d",
                {"status": process.returncode, "cycle": event["cycle"]},
            )

    async def _last_record(self, now_s: int) -> CycleRecord:
        data = await self._side.client.command("HGET", self._key, FIELD)
        try:
            return CycleRecord(*map(int, data.split()))
        except (AttributeError, TypeError, ValueError):
            record = CycleRecord(0, now_s, 0, 0, 0)
            await self._write(record)
            return record

    async def _write(self, record: CycleRecord) -> None:
        await self._side.client.command("HSET", self._key, FIELD, " ".join(map(str, record)))
