"""Connections to one server, and bounded round trips over them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from hiredis import pack_command
from redis import exceptions as errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from redis.asyncio.connection import AbstractConnection

    from bigcrawl.redisdb.scripts import Value

_STRINGS: Final = (str, bytes)
CALLS_MAX = 512  # limits the calls that a lost connection leaves in doubt
BYTES_MAX = 16 << 20  # sent within the reply timeout at 10 Mbit/s


def divide_commands(rows: Sequence[Sequence[Value]]) -> Iterator[Sequence[Sequence[Value]]]:
    """Divide commands into bounded round trips. A larger command goes alone."""
    start = size = 0
    for at, row in enumerate(rows):
        row_size = sum([len(word) for word in row if isinstance(word, _STRINGS)])
        if at - start >= CALLS_MAX or (size + row_size > BYTES_MAX and at > start):
            yield rows[start:at]
            start, size = at, 0
        size += row_size
    if start < len(rows):
        yield rows[start:]


class ConnectionPool:
    def __init__(self, make: Callable[[], AbstractConnection], most: int) -> None:
        self._make = make
        self._room = asyncio.Semaphore(most)
        self._idle: list[AbstractConnection] = []
        self._lent: set[AbstractConnection] = set()

    def __repr__(self) -> str:
        return f"<ConnectionPool idle={len(self._idle)} lent={len(self._lent)}>"

    async def take(self) -> AbstractConnection:
        """Wait for an open connection without unread bytes, which the caller must give back."""
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
        self._lent.remove(connection)
        self._idle.append(connection)
        self._room.release()

    async def send_commands(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        """Send all commands at once and return their replies, error replies as exceptions."""
        connection = await self.take()
        try:
            return await send_on(connection, rows)
        except BaseException:
            # Late replies would reach the next user of the connection.
            await connection.disconnect(nowait=True)
            raise
        finally:
            self.give_back(connection)

    async def disconnect(self) -> None:
        for connection in (*self._idle, *self._lent):
            await connection.disconnect()


async def send_on(connection: AbstractConnection, rows: Sequence[Sequence[Value]]) -> list[Any]:
    """Send all commands at once and return their replies, error replies as exceptions."""
    packed = b"".join([pack_command(tuple(row)) for row in rows])  # type: ignore[arg-type]
    await connection.send_packed_command([packed], check_health=False)
    return [await _read_reply(connection) for _ in rows]


async def _read_reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except errors.ResponseError as error:
        return error


async def _is_stale(connection: AbstractConnection) -> bool:
    can_read = getattr(connection, "can_read", None) or connection.can_read_destructive  # its name before redis-py 8
    try:
        return bool(await can_read())
    except (errors.RedisError, OSError):
        return True
