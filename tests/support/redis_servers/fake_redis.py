"""A server that speaks just enough RESP2 to say what a real one would not on demand."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CLOCK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

INFO = "redis_version:7.2.0\r\nrun_id:fake"

# A simple string, an error ("-ERR ..."), bytes for a bulk string, an integer, or None: the connection is cut
# without an answer.
Reply = str | bytes | int | None


class FakeRedis:
    """Answers each command with what `answer` says; INFO, PING and the handshake's commands by itself.

    Args:
        answer: the reply to a command, given its words.
        info: the reply to INFO.
        handshake: other replies than OK to CLIENT, AUTH, SELECT and SCRIPT. RESP2 alone is spoken, as by old
            servers: HELLO is refused.

    Attributes:
        received: every command but the handshake's, as words.
        connections: how many were opened.
    """

    def __init__(
        self,
        answer: Callable[[list[bytes]], Reply] | None = None,
        info: str = INFO,
        handshake: dict[bytes, str] | None = None,
    ) -> None:
        self.info = info
        self._handshake = {b"CLIENT": "OK", b"AUTH": "OK", b"SELECT": "OK", b"SCRIPT": "OK"} | (handshake or {})
        self.received: list[list[bytes]] = []
        self.connections = 0
        self.open = 0
        self._answer = answer or (lambda words: "OK")

    @contextlib.asynccontextmanager
    async def listening(self, path: Path | None = None) -> AsyncIterator[str]:
        """Serve on a unix socket at `path`, or on a free port of 127.0.0.1; yields the address behind "://"."""
        if path is not None:
            server = await asyncio.start_unix_server(self._serve, path)
            address = str(path)
        else:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield address
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while words := await _read_command(reader):
                reply = self._reply(words)
                if reply is None:
                    return
                writer.write(_encoded(reply))
                await writer.drain()
        finally:
            self.open -= 1
            writer.close()

    def _reply(self, words: list[bytes]) -> Reply:
        name = words[0].upper()
        if name in self._handshake:
            return self._handshake[name]
        if name == b"INFO":
            return self.info.encode()
        if words[:2] == [b"HMGET", CLOCK.encode()]:
            return "*2\r\n$-1\r\n$-1"  # a list of two that are not there
        if name == b"HELLO":
            return "-ERR unknown command 'HELLO'"
        self.received.append(words)
        return "PONG" if name == b"PING" else self._answer(words)


async def _read_command(reader: asyncio.StreamReader) -> list[bytes]:
    """The words of the next command; none at the end of the connection."""
    head = await reader.readline()
    words = []
    for _ in range(int(head[1:]) if head else 0):
        length = int((await reader.readline())[1:])
        words.append((await reader.readexactly(length + 2))[:-2])
    return words


def _encoded(reply: str | bytes | int) -> bytes:
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, bytes):
        return b"$%d\r\n%s\r\n" % (len(reply), reply)
    return (reply if reply.startswith(("-", "*")) else "+" + reply).encode() + b"\r\n"
