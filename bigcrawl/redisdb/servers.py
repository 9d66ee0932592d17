"""The server, or the masters of a cluster, behind a Redis URL.

Each new connection logs in, asks for the server's run id, and loads missing scripts. If the run id has changed, every
connection fails until `accept_new_server`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import redis.asyncio as aredis
from redis import exceptions as errors

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb import script_texts
from bigcrawl.redisdb.connections import ConnectionPool, send_on
from bigcrawl.redisdb.keys import CLOCK
from bigcrawl.redisdb.pools import checked_pool, close_sentinels
from bigcrawl.redisdb.reply_errors import await_permitted, is_cut_off

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redis.asyncio.connection import AbstractConnection

    from bigcrawl.redisdb.crawl_clock import CrawlClock
    from bigcrawl.redisdb.masters import Address, Masters
    from bigcrawl.redisdb.scripts import Value

REDIS_VERSION_MIN = (7, 0)
CONNECTIONS_MAX = 8  # more would not be faster


class ServerConnections:
    """The server, or the masters, of a URL, for one event loop; `run_id` is None before the first greeting."""

    def __init__(self, url: str, crawl_clock: CrawlClock, learn_time: Callable[[], Awaitable[None]]) -> None:
        self.run_id: str | None = None
        self._crawl_clock = crawl_clock
        self._learn_time = learn_time
        self._masters: Masters | None = None
        self._meeting = asyncio.Lock()
        self._loaded_on: set[str] = set()
        self._pool = checked_pool(url, self._on_connect)
        self.connections = ConnectionPool(self._pool.make_connection, CONNECTIONS_MAX)

    @property
    def is_cluster(self) -> bool:
        return self._masters is not None

    async def connect(self) -> None:
        self.connections.give_back(await self.connections.take())
        if self._masters is not None and self.run_id is None:
            await self._learn_masters(self._masters)

    async def round_trip(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        if self._masters is None:
            if self.run_id is not None:
                return await self.connections.send_commands(rows)
            self.connections.give_back(await self.connections.take())
        masters = self._masters
        if masters is None:
            return await self.connections.send_commands(rows)
        if self.run_id is None:
            await self._learn_masters(masters)
        return await masters.round_trip(rows)

    async def ask_each(self, row: Sequence[Value]) -> list[Any]:
        if self._masters is not None:
            return await self._masters.ask_each(row)
        [reply] = await self.connections.send_commands([row])
        if isinstance(reply, errors.RedisError):
            raise reply
        return [reply]

    async def all_connections(self) -> list[ConnectionPool]:
        return [self.connections] if self._masters is None else await self._masters.pools()

    async def accept_new_server(self) -> None:
        """Accept the next server that answers, and reopen all connections."""
        self.run_id = None
        await self.connections.disconnect()
        if self._masters is not None:
            await self._masters.disconnect()
            self._masters = self._masters_known_to(self._masters.seeds)

    def undo_acceptance(self) -> None:
        self.run_id = "unknown"
        if self._masters is not None:
            self._masters.forget_run_ids()

    async def close(self) -> None:
        await self.connections.disconnect()
        if self._masters is not None:
            await self._masters.disconnect()
        await close_sentinels(self._pool)

    async def _on_connect(self, connection: AbstractConnection) -> None:
        try:
            await self._prepare_connection(connection)
        except BigcrawlError:
            await connection.disconnect()
            raise
        except errors.ConnectionError as error:
            from bigcrawl.redisdb.tls import ask_for_fault  # few crawls meet an error

            if is_cut_off(error) and (fault := await ask_for_fault(connection)) is not None:
                raise errors.ConnectionError(str(fault)) from fault
            raise

    async def _prepare_connection(self, connection: AbstractConnection) -> None:
        try:
            await connection.on_connect()
        except errors.ResponseError as error:
            raise errors.ConnectionError(str(error)) from error  # as redis-py does over a unix socket
        sent_ms = self._crawl_clock.boot_ms()
        await connection.send_command("INFO", "server")
        info = _fields_of(await connection.read_response())
        run_id = info.get("run_id", "")
        if self._masters is not None:
            self._masters.check_known(run_id)
        elif self.run_id is None:
            _check_version(info)
            if "cluster" in (info.get("redis_mode"), info.get("server_mode")):
                self._masters = self._masters_known_to()
                return
            self.run_id = run_id
        elif run_id != self.run_id:
            raise errors.ConnectionError(f"restarted:{run_id}")
        if self._masters is None and not self._crawl_clock.is_known:
            await self._read_time(connection, info, sent_ms)
        if run_id not in self._loaded_on:
            await _load_scripts(connection)
            self._loaded_on.add(run_id)

    async def _read_time(self, connection: AbstractConnection, info: dict[str, str], sent_ms: int) -> None:
        await connection.send_command("HMGET", CLOCK, "adjust", "told")
        adjust_ms, told_ms = (int(value or 0) for value in await await_permitted(connection.read_response(), CLOCK))
        # Never earlier than a time that any node has received.
        time_ms = max(int(info.get("server_time_usec", "0")) // 1000 + adjust_ms, told_ms)
        self._crawl_clock.record_time(time_ms, sent_ms)

    async def _learn_masters(self, masters: Masters) -> None:
        async with self._meeting:
            if self.run_id is not None or masters is not self._masters:
                return
            await masters.learn_masters()
            self.run_id = masters.run_id
        if not self._crawl_clock.is_known:
            await self._learn_time()

    def _masters_known_to(self, seeds: Sequence[Address] = ()) -> Masters:
        """Return the masters that these servers know, or that of the URL."""
        from bigcrawl.redisdb.masters import Address, Masters

        told = self._pool.connection_kwargs
        of_url = Address(told.get("host", "localhost"), int(told.get("port", 6379)))
        return Masters(self._make_connection_to, CONNECTIONS_MAX, seeds or [of_url])

    def _make_connection_to(self, address: Address) -> AbstractConnection:
        told = {name: value for name, value in self._pool.connection_kwargs.items() if name != "path"}
        is_socket = issubclass(self._pool.connection_class, aredis.UnixDomainSocketConnection)
        make = aredis.Connection if is_socket else self._pool.connection_class
        return make(**{**told, "host": address.host, "port": address.port})


async def _load_scripts(connection: AbstractConnection) -> None:
    rows = [("SCRIPT", "LOAD", script_texts.source_for_many(name)) for name in script_texts.script_names()]
    for reply in await send_on(connection, rows):
        if isinstance(reply, errors.RedisError):
            raise reply


def _fields_of(reply: object) -> dict[str, str]:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _check_version(info: dict[str, str]) -> None:
    text = info.get("valkey_version") or info.get("redis_version", "0.0")
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < REDIS_VERSION_MIN:
        wanted = ".".join(map(str, REDIS_VERSION_MIN))
        raise ConfigError(
            f"the Redis at BIGCRAWL_REDIS_URL is version {text}; bigcrawl needs {wanted} or later, or Valkey"
        )
