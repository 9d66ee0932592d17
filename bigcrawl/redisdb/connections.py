"""A pool of a few connections to one server, each lent to one call at a time.

The library makes the connections. Its own pool takes three locks and emits an event for each loan, which costs more
than a small call.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hiredis import pack_command
from redis import exceptions as errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis.asyncio.connection import AbstractConnection

    from bigcrawl.redisdb.scripts import Value


class Connections:
    """At most `most` connections, opened when needed; for one event loop."""

    def __init__(self, make: Callable[[], AbstractConnection], most: int) -> None:
        self._make = make
        self._room = asyncio.Semaphore(most)
        self._idle: list[AbstractConnection] = []
        self._lent: set[AbstractConnection] = set()

    def __repr__(self) -> str:
        return f"<Connections idle={len(self._idle)} lent={len(self._lent)}>"

    async def take(self) -> AbstractConnection:
        """Wait for a free connection, open and without unread bytes. The caller must give it back.

        Raises:
            redis.exceptions.RedisError, OSError: the server cannot be reached, or refuses the login.
        """
        await self._room.acquire()
        connection = self._idle.pop() if self._idle else self._make()
        self._lent.add(connection)
        try:
            if connection.is_connected and await _is_stale(connection):
                await connection.disconnect()
            if not connection.is_connected:
                await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            self.give_back(connection)
            raise
        return connection

    def give_back(self, connection: AbstractConnection) -> None:
        """Take a connection back. If it was cut off meanwhile, the next `take` reopens it."""
        self._lent.remove(connection)
        self._idle.append(connection)
        self._room.release()

    async def talk(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        """Send all commands at once and return their replies in order, error replies as exceptions.

        The library's own pipeline packs commands in Python, which took longer than the server took to answer.

        Raises:
            redis.exceptions.RedisError, OSError: as `take`, or the connection broke.
        """
        connection = await self.take()
        try:
            packed = b"".join([pack_command(tuple(row)) for row in rows])  # type: ignore[arg-type]
            await connection.send_packed_command([packed], check_health=False)
            return [await _reply(connection) for _ in rows]
        except BaseException:
            # Replies may still arrive, and the next user of the connection would take them for its own.
            await connection.disconnect(nowait=True)
            raise
        finally:
            self.give_back(connection)

    async def disconnect(self) -> None:
        """Close all connections. Calls on lent ones fail."""
        for connection in (*self._idle, *self._lent):
            await connection.disconnect()


async def _reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except errors.ResponseError as error:
        return error


async def _is_stale(connection: AbstractConnection) -> bool:
    """Whether the server has closed the connection, or it has bytes that nobody waits for."""
    can_read = getattr(connection, "can_read", None) or connection.can_read_destructive  # its name before redis-py 8
    try:
        return bool(await can_read())
    except (errors.RedisError, OSError):
        return True
