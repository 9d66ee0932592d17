"""Which Redis a client talks to: one server, or the masters of a cluster. Each is greeted when a connection opens.

The greeting logs in, asks for the server's run id, and loads the scripts where they are missing. If the run id is not
the one of the first connection, the server was restarted and may have forgotten its last second. Then every connection
fails until `accept`. The first greeting also finds out whether the server belongs to a cluster, and learns the time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import redis.asyncio as aredis
from redis import exceptions as errors

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb import script_texts
from bigcrawl.redisdb.connections import Connections
from bigcrawl.redisdb.keys import CLOCK
from bigcrawl.redisdb.masters import Address, Masters
from bigcrawl.redisdb.pools import checked_pool, close_sentinels
from bigcrawl.redisdb.reply_errors import is_cut_off, permitted
from bigcrawl.redisdb.tls import ask_for_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redis.asyncio.connection import AbstractConnection

    from bigcrawl.redisdb.crawl_clock import CrawlClock
    from bigcrawl.redisdb.scripts import Value

REDIS_VERSION_MIN = (7, 0)
CONNECTIONS_MAX = 8  # further calls of the node wait; more connections would not get faster answers


class Servers:
    """The server, or the masters, that a URL leads to. For one event loop.

    Attributes:
        run_id: identifies the processes that were met; None before any, and while a restart is being accepted.
    """

    def __init__(self, url: str, crawl_clock: CrawlClock, learn_time: Callable[[], Awaitable[None]]) -> None:
        """Begin without a connection.

        Args:
            url: as in BIGCRAWL_REDIS_URL.
            crawl_clock: is set by the first greeting.
            learn_time: asks for the time of the crawls, which the greeting of a cluster's server cannot tell.

        Raises:
            ConfigError: no connection can be made from the URL.
        """
        self.run_id: str | None = None
        self._crawl_clock = crawl_clock
        self._learn_time = learn_time
        self._masters: Masters | None = None  # of a cluster
        self._meeting = asyncio.Lock()
        self._loaded_on: set[str] = set()  # the run ids of the servers that have all scripts
        self._pool = checked_pool(url, self._on_connect)
        self.connections = Connections(self._pool.make_connection, CONNECTIONS_MAX)

    def __repr__(self) -> str:
        return f"<Servers run_id={self.run_id} {self._masters or self.connections!r}>"

    @property
    def is_cluster(self) -> bool:
        """Whether they are the masters of a cluster. False before the first greeting."""
        return self._masters is not None

    async def connect(self) -> None:
        """Open a connection, and learn from its greeting what is not known of the server yet.

        Raises:
            redis.exceptions.RedisError, OSError: a server cannot be reached, refuses the login, or was restarted.
            ConfigError: a server is too old.
        """
        self.connections.give_back(await self.connections.take())
        if self._masters is not None and self.run_id is None:
            await self._meet(self._masters)

    async def round_trip(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        """Send all commands at once and return their replies in order, error replies as exceptions.

        Raises what `connect` raises.
        """
        if self._masters is None:
            if self.run_id is not None:
                return await self.connections.talk(rows)
            self.connections.give_back(await self.connections.take())  # its greeting tells whether it is a cluster
        masters = self._masters
        if masters is None:
            return await self.connections.talk(rows)
        if self.run_id is None:
            await self._meet(masters)
        return await masters.round_trip(rows)

    async def ask_each(self, row: Sequence[Value]) -> list[Any]:
        """Send one command to each server and return their replies. Raise the first error reply."""
        if self._masters is not None:
            return await self._masters.ask_each(row)
        [reply] = await self.connections.talk([row])
        if isinstance(reply, errors.RedisError):
            raise reply
        return [reply]

    async def all_connections(self) -> list[Connections]:
        """The connections to each server. Raises what `connect` raises."""
        return [self.connections] if self._masters is None else await self._masters.pools()

    async def accept(self) -> None:
        """Take whatever server answers next for the known one. All connections are opened anew."""
        self.run_id = None
        await self.connections.disconnect()
        if self._masters is not None:
            await self._masters.disconnect()
            self._masters = Masters(self._make_connection_to, CONNECTIONS_MAX, self._masters.seeds)

    def take_back_acceptance(self) -> None:
        """Undo `accept`: the next connection reports the restart again."""
        self.run_id = "unknown"
        if self._masters is not None:
            self._masters.forget_run_ids()

    async def close(self) -> None:
        """Close all connections."""
        await self.connections.disconnect()
        if self._masters is not None:
            await self._masters.disconnect()
        await close_sentinels(self._pool)

    # --- greeting

    async def _on_connect(self, connection: AbstractConnection) -> None:
        try:
            await self._greet(connection)
        except BigcrawlError:
            await connection.disconnect()  # the library closes it for its own errors alone
            raise
        except errors.ConnectionError as error:
            if is_cut_off(error) and (fault := await ask_for_fault(connection)) is not None:
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
        info = _fields_of(await connection.read_response())
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
            await self._read_time(connection, info, sent_ms)
        if run_id not in self._loaded_on:
            await _load_scripts(connection)
            self._loaded_on.add(run_id)

    async def _read_time(self, connection: AbstractConnection, info: dict[str, str], sent_ms: int) -> None:
        await connection.send_command("HMGET", CLOCK, "adjust", "told")
        adjust_ms, told_ms = (int(value or 0) for value in await permitted(connection.read_response(), CLOCK))
        # Never earlier than any node was told. If the server's clock has been set back since, the next `tell_time`
        # lets the time go on from there.
        time_ms = max(int(info.get("server_time_usec", "0")) // 1000 + adjust_ms, told_ms)
        self._crawl_clock.note(time_ms, sent_ms)

    # --- a cluster

    async def _meet(self, masters: Masters) -> None:
        """Connect to all masters of the cluster, and learn the time from one of them."""
        async with self._meeting:
            if self.run_id is not None or masters is not self._masters:
                return  # another task did so while this one waited
            await masters.meet()
            self.run_id = masters.run_id
        if not self._crawl_clock.is_known:
            await self._learn_time()

    def _address(self) -> Address:
        told = self._pool.connection_kwargs
        return Address(told.get("host", "localhost"), int(told.get("port", 6379)))

    def _make_connection_to(self, address: Address) -> AbstractConnection:
        told = {name: value for name, value in self._pool.connection_kwargs.items() if name != "path"}
        is_socket = issubclass(self._pool.connection_class, aredis.UnixDomainSocketConnection)
        make = aredis.Connection if is_socket else self._pool.connection_class
        return make(**{**told, "host": address.host, "port": address.port})


async def _load_scripts(connection: AbstractConnection) -> None:
    for name in script_texts.names():
        await connection.send_command("SCRIPT", "LOAD", script_texts.source_for_many(name))
        await connection.read_response()


def _fields_of(reply: object) -> dict[str, str]:
    """Read the reply to INFO."""
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
