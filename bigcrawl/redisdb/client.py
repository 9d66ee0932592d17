"""The connection to Redis: batched script calls, translated errors, and the detection of a restarted server.

Scripts are loaded on the first connection to each server process, before anything is called there. They must not be
loaded only when a call misses them. Another node might then load a script in the middle of a pipeline: the later calls
would succeed while the earlier ones had to be repeated, and batches of an inbox would overtake each other.

A Redis that restarts may have forgotten its last second. So every new connection asks for the server's run id. If the
id has changed, each call fails with `RedisRestartedError` until the node has reconciled its partitions and calls
`accept_restart`.

The caller passes the time to scripts, from `CrawlClock`, because the server's clock may be set at any moment.

If the server belongs to a Redis Cluster, each call goes to the master of its keys (`masters`). A master that was
restarted, or a replica that took its place, counts like a server that was restarted.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import redis.asyncio as aredis
from redis import exceptions as errors

from bigcrawl.clock import SystemClock
from bigcrawl.exceptions import (
    BigcrawlError,
    ConfigError,
    ContractError,
    OwnershipLostError,
    RewoundError,
    TransientStoreError,
)
from bigcrawl.redisdb import script_texts, scripts
from bigcrawl.redisdb.connections import Connections
from bigcrawl.redisdb.crawl_clock import STEP_MS, CrawlClock
from bigcrawl.redisdb.keys import CLOCK
from bigcrawl.redisdb.masters import Address, Masters
from bigcrawl.redisdb.pools import close_sentinels, make_pool
from bigcrawl.redisdb.tls import ask_for_fault, check_certificates, tls_fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence

    from redis.asyncio.connection import AbstractConnection

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.scripts import Call

logger = logging.getLogger(__name__)

REDIS_VERSION_MIN = (7, 0)
REPLY_TIMEOUT_S = 20.0  # a script takes milliseconds; a server that is silent for this long is unreachable
CONNECT_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 8  # further calls of the node wait; more connections would not get faster answers
CALLS_PER_PIPELINE = 512  # bounds the calls that a lost connection leaves in doubt, and the reply buffers
BYTES_PER_PIPELINE = 16 << 20  # takes less than REPLY_TIMEOUT_S over a link of 10 Mbit/s

# Error replies of a server that is up but cannot accept writes now: full disk or memory, loading, fail-over. For some
# of them the library has exception classes and strips the first word; which ones depends on its version.
_PASSING = (
    *("MISCONF", "OOM", "LOADING", "READONLY", "MASTERDOWN"),
    *("CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS"),
)
_PASSING_ERRORS = (
    errors.ReadOnlyError,
    errors.OutOfMemoryError,
    errors.MasterDownError,
    errors.ClusterDownError,
    errors.TryAgainError,
)


_NOT_PERMITTED_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")


class RedisRestartedError(RewoundError):
    """The server's run id changed: it may have forgotten its last second."""


class RedisRefusedError(TransientStoreError):
    """The server is up but accepts no writes now. The call was not carried out and may be repeated."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the client library's errors into ours."""
    try:
        yield
    except errors.RedisError as error:
        raise _ours(error) from error
    except (OSError, TimeoutError) as error:
        raise TransientStoreError(f"Redis does not answer: {error}") from error


def _ours(error: errors.RedisError) -> BigcrawlError:
    # Over a unix socket, the library wraps the server's answer to the handshake.
    is_handshake = isinstance(error.__cause__, errors.ResponseError | errors.AuthenticationError)
    reply = error.__cause__ if is_handshake else error
    if isinstance(reply, errors.AuthenticationError | errors.AuthorizationError):
        return ConfigError(f"Redis refuses the login: {reply}; set user and password in BIGCRAWL_REDIS_URL")
    if isinstance(reply, errors.NoPermissionError) or str(reply).startswith(_NOT_PERMITTED_IN_SCRIPT):
        return ConfigError(
            f"Redis does not permit BIGCRAWL_REDIS_URL's user what bigcrawl needs: {reply}; `ACL LOG` of the server "
            f"names it, docs/operations.md has the rule"
        )
    if (reason := tls_fault(error)) is not None:
        return ConfigError(f"no TLS connection to the Redis at BIGCRAWL_REDIS_URL: {reason}")
    if isinstance(reply, errors.ConnectionError | errors.TimeoutError):
        return TransientStoreError(f"Redis does not answer: {reply}")
    if str(reply).startswith(_PASSING) or isinstance(reply, _PASSING_ERRORS):
        return RedisRefusedError(f"Redis cannot take writes now: {reply}")
    if is_handshake:
        return ConfigError(f"Redis refuses the connection: {reply}; check BIGCRAWL_REDIS_URL")
    return ContractError(f"Redis refused a call: {reply}")


def _is_cut_off(error: errors.ConnectionError) -> bool:
    """Whether a server that was being greeted gave no reason. A login that it refuses is a ConnectionError too."""
    is_reply = type(error) is not errors.ConnectionError or isinstance(error.__cause__, errors.ResponseError)
    return not is_reply and not str(error).startswith("restarted:") and tls_fault(error) is None


class RedisClient:
    """Script calls in pipelines over one small pool of connections.

    Attributes:
        in_doubt: partitions with a call whose reply was lost, or was an error. The call may have been carried out, or
            may still be, and the owner's counts of these partitions may be wrong. Reconciliation empties the set.

    Cost: one round trip a `run`, 3-5 us of CPU a call.
    """

    def __init__(self, url: str, *, reply_timeout_s: float = REPLY_TIMEOUT_S, clock: Clock | None = None) -> None:
        self.url = url
        self._crawl_clock = CrawlClock(clock or SystemClock())
        self._asking = asyncio.Lock()
        self._meeting = asyncio.Lock()
        self._name = uuid.uuid4().hex
        self._reply_timeout_s = reply_timeout_s
        self.run_id: str | None = None
        self.round_trips = 0
        self.round_trips_s = 0.0  # how long they took, lost ones included
        self.in_doubt: set[int] = set()
        self._masters: Masters | None = None  # of a cluster
        self._loaded_on: set[str] = set()  # the run ids of the servers that have all scripts
        try:
            pool = make_pool(
                url,
                # The library would send within asyncio.wait_for, which may lose a cancellation in Python 3.11. A node
                # that closes would then wait for the reply. `_watched` sets the timeout instead.
                socket_timeout=None,
                socket_connect_timeout=CONNECT_TIMEOUT_S,
                protocol=2,  # every server understands it, so a server that is too old gets our own error message
                redis_connect_func=self._on_connect,
                retry=None,
                retry_on_error=[],
            )
            check_certificates(pool.make_connection())  # type: ignore[no-untyped-call]  # finds unknown options too
        except (ValueError, TypeError) as error:
            # The library's message may quote a part of the URL, for instance of a password that contains / or #.
            reason = (
                error if "@" not in url else "not what redis://user:password@host:port/0 looks like (escape / and #)"
            )
            raise ConfigError(f"BIGCRAWL_REDIS_URL is {_without_password(url)!r}: {reason}") from None
        self._pool = pool
        self._connections = Connections(pool.make_connection, CONNECTIONS_MAX)

    def __repr__(self) -> str:
        url = _without_password(self.url)
        return f"<RedisClient {url} run_id={self.run_id} round_trips={self.round_trips}>"

    async def _on_connect(self, connection: AbstractConnection) -> None:
        try:
            await self._greet(connection)
        except BigcrawlError:
            await connection.disconnect()  # the library closes it for its own errors alone
            raise
        except errors.ConnectionError as error:
            if _is_cut_off(error) and (fault := await ask_for_fault(connection)) is not None:
                raise errors.ConnectionError(str(fault)) from fault
            raise

    async def _greet(self, connection: AbstractConnection) -> None:
        """Log in, identify the server, and load the scripts if it does not have them."""
        try:
            await connection.on_connect()
        except errors.ResponseError as error:
            raise errors.ConnectionError(str(error)) from error  # as the library does over a unix socket
        sent_ms = self._crawl_clock.boot_ms()
        await connection.send_command("INFO", "server")
        reply = await connection.read_response()
        info = dict(line.split(":", 1) for line in _text(reply).splitlines() if ":" in line)
        run_id = info.get("run_id", "")
        if self._masters is not None:
            self._masters.check_known(run_id)
        elif self.run_id is None:
            _check_version(info)
            if "cluster" in (info.get("redis_mode"), info.get("server_mode")):
                self._masters = Masters(self._make_connection_to, CONNECTIONS_MAX, [self._address()])
                return  # whatever it is used for is done by the masters
            self.run_id = run_id
        elif run_id != self.run_id:
            raise errors.ConnectionError(f"restarted:{run_id}")
        if self._masters is None and not self._crawl_clock.is_known:
            await connection.send_command("HMGET", CLOCK, "adjust", "told")
            adjust_ms, told_ms = (int(value or 0) for value in await _permitted(connection.read_response(), CLOCK))
            # Never earlier than any node was told. If the server's clock has been set back since, the next
            # `tell_time` lets the time go on from there.
            time_ms = max(int(info.get("server_time_usec", "0")) // 1000 + adjust_ms, told_ms)
            self._crawl_clock.note(time_ms, sent_ms)
        if run_id not in self._loaded_on:
            for name in script_texts.names():
                await connection.send_command("SCRIPT", "LOAD", script_texts.source_for_many(name))
                await connection.read_response()
            self._loaded_on.add(run_id)

    def _address(self) -> Address:
        told = self._pool.connection_kwargs
        return Address(told.get("host", "localhost"), int(told.get("port", 6379)))

    def _make_connection_to(self, address: Address) -> AbstractConnection:
        told = {name: value for name, value in self._pool.connection_kwargs.items() if name != "path"}
        is_socket = issubclass(self._pool.connection_class, aredis.UnixDomainSocketConnection)
        make = aredis.Connection if is_socket else self._pool.connection_class
        return make(**{**told, "host": address.host, "port": address.port})

    async def _meet_masters(self, masters: Masters) -> None:
        """Connect to all masters of the cluster, and learn the time from one of them."""
        async with self._meeting:
            if self.run_id is not None or masters is not self._masters:
                return  # another task did so while this one waited
            await masters.meet()
            self.run_id = masters.run_id
        if not self._crawl_clock.is_known:
            sent_ms = self._crawl_clock.boot_ms()
            time_ms, _ = await self._crawl_time(correct=False)
            self._crawl_clock.note(time_ms, sent_ms)

    @property
    def server(self) -> str:
        """The run id of the server: another one may have forgotten what this one was told. Empty before it answers."""
        return self.run_id or ""

    async def accept_restart(self) -> None:
        """Accept the restarted server. The caller must reconcile its partitions afterwards."""
        self.run_id = None
        await self._connections.disconnect()
        if self._masters is not None:
            await self._masters.disconnect()
            self._masters = Masters(self._make_connection_to, CONNECTIONS_MAX, self._masters.seeds)
        await self.ping()

    def take_back_acceptance(self) -> None:
        """Undo `accept_restart`, because reconciliation failed. The next connection reports the restart again."""
        self.run_id = "unknown"
        if self._masters is not None:
            self._masters.forget_run_ids()

    def take_doubts(self) -> set[int]:
        """Return the partitions in doubt, to be compared now: none is in doubt any more."""
        taken, self.in_doubt = self.in_doubt, set()
        return taken

    def return_doubts(self, partitions: set[int]) -> None:
        """These could not be compared, and stay in doubt."""
        self.in_doubt |= partitions

    async def ping(self) -> None:
        """Check that the server answers.

        Raises:
            TransientStoreError: it does not.
            ConfigError: wrong login, or the server is too old.
        """
        await self.command("PING")

    async def command(self, *words: scripts.Value) -> Any:
        """Send one command and return its unparsed reply: bytes, numbers, and lists of them."""
        [reply] = await self.commands([words])
        return reply

    async def is_cluster(self) -> bool:
        """Whether the server belongs to a cluster, so that a script may take keys of one hash tag only.

        Cost: nothing, once the client has been used.

        Raises:
            TransientStoreError, ConfigError: as `ping`.
        """
        if self.run_id is None:
            await self.ping()
        return self._masters is not None

    async def ask_each_server(self, *words: scripts.Value) -> list[Any]:
        """Send one command to each server, and return their replies: several if it is a cluster."""
        await self.ping()
        if self._masters is None:
            return [await self.command(*words)]
        async with self._watched():
            return await self._masters.ask_each(words)

    async def keys(self, pattern: str, at_once: int) -> AsyncIterator[list[bytes]]:
        """Scan for keys, all servers of a cluster. A key may come more than once. Raises what `command` raises."""
        await self.ping()
        for pool in [self._connections] if self._masters is None else await self._masters.pools():
            cursor = b"0"
            while True:
                async with self._watched():
                    [reply] = await pool.talk([("SCAN", cursor, "MATCH", pattern, "COUNT", at_once)])
                    if isinstance(reply, errors.RedisError):
                        raise reply
                cursor, found = reply
                if found:
                    yield found
                if int(cursor) == 0:
                    break

    async def commands(self, rows: Sequence[Sequence[scripts.Value]]) -> list[Any]:
        """Send commands in pipelines and return their replies in order. Raise the first error reply."""
        return await self._pipeline(rows, raise_errors=True)

    async def run(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run script calls in order, in as few round trips as possible, and return their parsed replies.

        Raises:
            TransientStoreError: Redis is unreachable or cannot write. Some calls may have been carried out.
            BigcrawlError: the first call that failed. The others were carried out.
        """
        results = await self.run_each(calls)
        for result in results:
            if isinstance(result, BigcrawlError):
                raise result
        return results

    async def read(self, call: Call[Any]) -> Any:
        """Run a call that only reads, on a server of others: nothing is written there, the time of crawls neither.

        Raises:
            TransientStoreError: Redis is unreachable.
            BigcrawlError: the call failed.
        """
        [result] = await self._run_some([call], 0)
        if isinstance(result, BigcrawlError):
            raise result
        return result

    async def run_each(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Like `run`, but the error of a single call is returned as its result.

        Raises:
            TransientStoreError: Redis is unreachable. Some calls may have been carried out.
        """
        if not self._crawl_clock.is_known:
            await self._connect()
        elif self._crawl_clock.is_due:
            await self._ask_time()
        results: list[Any] = []
        try:
            for start in range(0, len(calls), CALLS_PER_PIPELINE):
                results += await self._run_some(calls[start : start + CALLS_PER_PIPELINE], self.now_ms())
        except BaseException:
            self.in_doubt.update(call.in_doubt for call in calls if call.in_doubt is not None)
            raise
        for call, result in zip(calls, results, strict=True):
            if call.in_doubt is not None and _leaves_doubt(result):
                self.in_doubt.add(call.in_doubt)
        return results

    async def _run_some(self, calls: Sequence[Call[Any]], now_ms: int) -> list[Any]:
        # On a cluster, the keys of two calls may be on different servers, so calls are sent one by one.
        commands = script_texts.commands(calls, now_ms, script_texts.CALLS_MAX if self._masters is None else 1)
        replies = await self._pipeline([command.words for command in commands], raise_errors=False)
        missing = [i for i, reply in enumerate(replies) if isinstance(reply, errors.NoScriptError)]
        if missing:
            await self._load({commands[i].calls[0].name for i in missing})
            again = await self._pipeline([commands[i].words for i in missing], raise_errors=False)
            for i, reply in zip(missing, again, strict=True):
                replies[i] = reply
        return [
            _parsed(call, reply)
            for command, whole in zip(commands, replies, strict=True)
            for call, reply in zip(command.calls, _each(command.calls, whole), strict=True)
        ]

    def now_ms(self) -> int:
        """The time of the crawls on this Redis, ms since the epoch; 0 before the first connection."""
        return self._crawl_clock.now_ms()

    async def _connect(self) -> None:
        """Open the first connection, which also learns the time."""
        async with self._watched():
            self._connections.give_back(await self._connections.take())
            if self._masters is not None and self.run_id is None:
                await self._meet_masters(self._masters)

    async def _ask_time(self) -> None:
        """Check once a second whether the time is still right."""
        clock = self._crawl_clock
        async with self._asking:
            if not clock.is_due:  # another task has asked while this one waited
                return
            sent_ms = clock.boot_ms()
            time_ms, set_ms = await self._crawl_time(correct=False)
            if not clock.agrees(time_ms, sent_ms):
                sent_ms = clock.boot_ms()
                time_ms, set_ms = await self._crawl_time(correct=True)
            clock.note(time_ms, sent_ms)
        if set_ms:
            logger.warning(
                "the clock of Redis was set by %(seconds).1f s; the crawl keeps its own time",
                {"seconds": set_ms / 1000},
            )

    async def _crawl_time(self, *, correct: bool) -> tuple[int, int]:
        call = scripts.tell_time(self.now_ms(), STEP_MS, self._name, correct=correct)
        [answer] = await self._run_some([call], 0)
        if isinstance(answer, BigcrawlError):
            raise answer
        time_ms, set_ms = answer
        return time_ms, set_ms

    async def _load(self, names: set[str]) -> None:
        await self.commands([("SCRIPT", "LOAD", script_texts.source_for_many(name)) for name in sorted(names)])

    async def _pipeline(self, rows: Sequence[Sequence[scripts.Value]], *, raise_errors: bool) -> list[Any]:
        replies: list[Any] = []
        for some in _pipelines(rows):
            async with self._watched():
                self.round_trips += 1
                since_s = perf_counter()
                try:
                    replies += await self._round_trip(some)
                finally:
                    self.round_trips_s += perf_counter() - since_s
                if raise_errors and (failed := next((r for r in replies if isinstance(r, errors.RedisError)), None)):
                    raise failed
        return replies

    async def _round_trip(self, rows: Sequence[Sequence[scripts.Value]]) -> list[Any]:
        """Send all commands at once and return their replies in order, error replies as exceptions."""
        if self._masters is None:
            if self.run_id is not None:
                return await self._connections.talk(rows)
            self._connections.give_back(await self._connections.take())  # its greeting tells whether it is a cluster
        masters = self._masters
        if masters is None:
            return await self._connections.talk(rows)
        if self.run_id is None:
            await self._meet_masters(masters)
        return await masters.round_trip(rows)

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Limit the wait for a connection and a reply, and translate errors."""
        with translated():
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

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.disconnect()
        if self._masters is not None:
            await self._masters.disconnect()
        await close_sentinels(self._pool)


def _pipelines(rows: Sequence[Sequence[scripts.Value]]) -> Iterator[Sequence[Sequence[scripts.Value]]]:
    """Divide commands into round trips of bounded number and size. A command above that size goes alone."""
    start = size = 0
    for at, row in enumerate(rows):
        row_size = sum(len(word) for word in row if isinstance(word, str | bytes))
        if at - start >= CALLS_PER_PIPELINE or (size + row_size > BYTES_PER_PIPELINE and at > start):
            yield rows[start:at]
            start, size = at, 0
        size += row_size
    if start < len(rows):
        yield rows[start:]


def _each(group: list[Call[Any]], reply: Any) -> list[Any]:
    """The replies to a group's calls. If the whole command failed, each call gets the error."""
    return [reply] * len(group) if isinstance(reply, Exception) else reply


def _parsed(call: Call[Any], reply: Any) -> Any:
    try:
        if isinstance(reply, Exception):
            with translated():
                raise reply
        return call.parse(reply)
    except BigcrawlError as error:
        return error


def _leaves_doubt(result: object) -> bool:
    """Whether the partition must be compared with Redis. A refused call did nothing; a lost partition is not ours."""
    return isinstance(result, BigcrawlError) and not isinstance(result, OwnershipLostError | RedisRefusedError)


async def _permitted(reply: Awaitable[Any], key: str) -> Any:
    """Wait for the reply to a command. If it is not permitted, the error names the key, as servers do not."""
    try:
        return await reply
    except errors.NoPermissionError as error:
        raise errors.NoPermissionError(f"{error} (~{key})") from None


def _text(reply: object) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)


def _without_password(url: str) -> str:
    """The URL without its password. Whatever precedes the last @ may be a password, even if the URL is malformed."""
    shown = re.sub(r"^([a-z+]+://)?.*@", r"\1***@", url, flags=re.DOTALL)
    return re.sub(r"(?<=password=)[^&]*", "***", shown)


def _check_version(info: dict[str, str]) -> None:
    text = info.get("valkey_version") or info.get("redis_version", "0.0")
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < REDIS_VERSION_MIN:
        wanted = ".".join(map(str, REDIS_VERSION_MIN))
        raise ConfigError(
            f"the Redis at BIGCRAWL_REDIS_URL is version {text}; bigcrawl needs {wanted} or later, or Valkey"
        )
