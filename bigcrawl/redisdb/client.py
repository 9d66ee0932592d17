"""The connection to Redis: batched script calls, translated errors, and the detection of restarted servers.

A restarted Redis, or a replaced master of a cluster, may have forgotten its last second. Each call then fails with
`RedisRestartedError`, until the node has reconciled its partitions and calls `accept_restart`.

Scripts are loaded on the first connection to a server process. If a call loaded them, later calls of another node might
run before its earlier ones are repeated, and batches of an inbox would overtake each other.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from redis import exceptions as errors

from bigcrawl.clock import SystemClock
from bigcrawl.exceptions import BigcrawlError, TransientStoreError
from bigcrawl.redisdb import connections, script_texts, scripts
from bigcrawl.redisdb.crawl_clock import STEP_MS, CrawlClock, RunningTime, TimeChecks
from bigcrawl.redisdb.pools import without_password
from bigcrawl.redisdb.reply_errors import RedisRestartedError, leaves_doubt, translating_errors
from bigcrawl.redisdb.servers import ServerConnections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from bigcrawl.redisdb.scripts import Call

logger = logging.getLogger(__name__)

REPLY_TIMEOUT_S = 20.0


class RedisClient:
    """Script calls in pipelines over one small pool of connections.

    `in_doubt` has the partitions of calls whose reply was lost or an error, but which may have been carried out.
    """

    def __init__(
        self, url: str, *, reply_timeout_s: float = REPLY_TIMEOUT_S, crawl_clock: CrawlClock | None = None
    ) -> None:
        self.url = url
        self._crawl_clock = crawl_clock or CrawlClock(SystemClock())
        self._time = TimeChecks(self._crawl_clock, self._crawl_time)
        self._name = uuid.uuid4().hex
        self._reply_timeout_s = reply_timeout_s
        self.round_trips = 0
        self.round_trips_s = 0.0
        self.in_doubt: set[int] = set()
        self._servers = ServerConnections(url, self._crawl_clock, self._time.learn_time)
        self._running_time = RunningTime(self._crawl_clock)

    def __repr__(self) -> str:
        url = without_password(self.url)
        return f"<RedisClient {url} run_id={self._servers.run_id} round_trips={self.round_trips}>"

    @property
    def server_run_id(self) -> str:
        return self._servers.run_id or ""

    @property
    def running_ms(self) -> int:
        return self._running_time.known_ms

    async def accept_restart(self) -> None:
        """Accept the restarted server; the caller must then reconcile its partitions and call `record_recovery`."""
        self._running_time.record_restart()
        await self._servers.accept_new_server()
        await self.ping()

    def record_recovery(self) -> None:
        self._running_time.record_recovery()

    def undo_acceptance(self) -> None:
        """Undo `accept_restart` after a failed reconciliation."""
        self._servers.undo_acceptance()

    async def is_cluster(self) -> bool:
        """Return whether all keys of a script must have one hash tag."""
        if self._servers.run_id is None:
            await self.ping()
        return self._servers.is_cluster

    async def close(self) -> None:
        await self._servers.close()

    def take_doubts(self) -> set[int]:
        taken, self.in_doubt = self.in_doubt, set()
        return taken

    def return_doubts(self, partitions: set[int]) -> None:
        self.in_doubt |= partitions

    async def ping(self) -> None:
        await self.command("PING")

    async def command(self, *words: scripts.Value) -> Any:
        [reply] = await self.commands([words])
        return reply

    async def ask_each_server(self, *words: scripts.Value) -> list[Any]:
        await self.ping()
        if not self._servers.is_cluster:
            return [await self.command(*words)]
        async with self._translating_errors():
            return await self._servers.ask_each(words)

    async def keys(self, pattern: str, at_once: int) -> AsyncIterator[list[bytes]]:
        """Yield the matching keys of all servers. A key may appear twice."""
        await self.ping()
        for pool in await self._servers.all_connections():
            cursor = b"0"
            while True:
                async with self._translating_errors():
                    [reply] = await pool.send_commands([("SCAN", cursor, "MATCH", pattern, "COUNT", at_once)])
                    if isinstance(reply, errors.RedisError):
                        raise reply
                cursor, found = reply
                if found:
                    yield found
                if int(cursor) == 0:
                    break

    async def commands(self, rows: Sequence[Sequence[scripts.Value]]) -> list[Any]:
        return await self._pipeline(rows, raise_errors=True)

    async def commands_each(self, rows: Sequence[Sequence[scripts.Value]]) -> list[Any]:
        """Like `commands`, but return error replies instead of raising them."""
        return [_as_bigcrawl_error(reply) for reply in await self._pipeline(rows, raise_errors=False)]

    async def run(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run script calls and return their results. Raise the first error, after all have run."""
        results = await self.run_each(calls)
        for result in results:
            if isinstance(result, BigcrawlError):
                raise result
        return results

    async def read(self, call: Call[Any]) -> Any:
        """Run one call that only reads, and does not even write the crawls' time."""
        [result] = await self._run_some([call], 0)
        if isinstance(result, BigcrawlError):
            raise result
        return result

    async def run_each(self, calls: Sequence[Call[Any]]) -> list[Any]:
        if not self._crawl_clock.is_known:
            await self._connect()
        elif self._crawl_clock.is_due:
            await self._time.check_time()
            if self._servers.is_cluster:
                await self.ping()  # reach all masters, even if calls use only one
        results: list[Any] = []
        try:
            for start in range(0, len(calls), connections.CALLS_MAX):
                results += await self._run_some(calls[start : start + connections.CALLS_MAX], self.now_ms())
        except BaseException:
            self.in_doubt.update(call.in_doubt for call in calls if call.in_doubt is not None)
            raise
        for call, result in zip(calls, results, strict=True):
            if call.in_doubt is not None and leaves_doubt(result):
                self.in_doubt.add(call.in_doubt)
        return results

    async def _run_some(self, calls: Sequence[Call[Any]], now_ms: int) -> list[Any]:
        commands = script_texts.commands(calls, now_ms, is_cluster=self._servers.is_cluster)
        replies = await self._pipeline([command.words for command in commands], raise_errors=False)
        missing = [i for i, reply in enumerate(replies) if isinstance(reply, errors.NoScriptError)]
        if missing:
            await self._load_scripts({commands[i].calls[0].name for i in missing})
            again = await self._pipeline([commands[i].words for i in missing], raise_errors=False)
            for i, reply in zip(missing, again, strict=True):
                replies[i] = reply
        return [
            _parse_reply(call, reply)
            for command, whole in zip(commands, replies, strict=True)
            for call, reply in zip(command.calls, _reply_for_each(command.calls, whole), strict=True)
        ]

    def now_ms(self) -> int:
        """Return the crawls' time, ms since the epoch; 0 before the first connection."""
        return self._crawl_clock.now_ms()

    async def _connect(self) -> None:
        async with self._translating_errors():
            await self._servers.connect()

    async def _crawl_time(self, correct: bool) -> tuple[int, int]:
        call = scripts.tell_time(self.now_ms(), STEP_MS, self._name, correct=correct)
        [answer] = await self._run_some([call], 0)
        if isinstance(answer, BigcrawlError):
            raise answer
        time_ms, set_ms = answer
        return time_ms, set_ms

    async def _load_scripts(self, names: set[str]) -> None:
        await self.commands([("SCRIPT", "LOAD", script_texts.source_for_many(name)) for name in sorted(names)])

    async def _pipeline(self, rows: Sequence[Sequence[scripts.Value]], *, raise_errors: bool) -> list[Any]:
        replies: list[Any] = []
        for some in connections.divide_commands(rows):
            async with self._translating_errors():
                self.round_trips += 1
                since_s, asked_ms = perf_counter(), self._crawl_clock.monotonic_ms()
                try:
                    replies += await self._round_trip(some)
                finally:
                    self.round_trips_s += perf_counter() - since_s
                if not self._servers.is_cluster or script_texts.key_of(some[0]) is None:
                    self._running_time.record_answer(asked_ms)  # only if all masters answered
                if raise_errors and (failed := next((r for r in replies if isinstance(r, errors.RedisError)), None)):
                    raise failed
        return replies

    def _round_trip(self, rows: Sequence[Sequence[scripts.Value]]) -> Awaitable[list[Any]]:
        return self._servers.round_trip(rows)

    @asynccontextmanager
    async def _translating_errors(self) -> AsyncIterator[None]:
        with translating_errors():
            try:
                async with asyncio.timeout(self._reply_timeout_s):
                    yield
            except TimeoutError as error:
                message = f"Redis did not answer within {self._reply_timeout_s:g} s"
                raise TransientStoreError(message) from error
            except errors.ConnectionError as error:
                if "restarted:" in str(error):
                    raise RedisRestartedError("Redis was restarted") from error
                raise


def _reply_for_each(group: list[Call[Any]], reply: Any) -> list[Any]:
    return [reply] * len(group) if isinstance(reply, Exception) else reply


def _parse_reply(call: Call[Any], reply: Any) -> Any:
    reply = _as_bigcrawl_error(reply)
    if isinstance(reply, BigcrawlError):
        return reply
    try:
        return call.parse(reply)
    except BigcrawlError as error:
        return error


def _as_bigcrawl_error(reply: Any) -> Any:
    if not isinstance(reply, Exception):
        return reply
    try:
        with translating_errors():
            raise reply
    except BigcrawlError as error:
        return error
