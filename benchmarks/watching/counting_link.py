"""A link to a Redis that counts the commands that pass, those within scripts not: these cost no round trip."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Final, Self

import hiredis

if TYPE_CHECKING:
    from pathlib import Path

BYTES_AT_ONCE: Final = 1 << 16


class CountingLink:
    """Passes bytes on between `url` and the server at a unix socket, in a thread of its own.

    Attributes:
        commands: how many have passed.
    """

    def __init__(self, socket_path: Path) -> None:
        self._socket_path = socket_path
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.commands = 0
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._socket_path)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(self._pass_on(reader, back, hiredis.Reader()), self._pass_on(there, writer, None))

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, commands: hiredis.Reader | None
    ) -> None:
        while data := await reader.read(BYTES_AT_ONCE):
            if commands is not None:
                commands.feed(data)
                while commands.gets() is not False:
                    self.commands += 1
            writer.write(data)
            await writer.drain()
        writer.close()
