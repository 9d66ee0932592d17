"""A link to a Redis that loses what is under way, again and again, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

BYTES_AT_ONCE = 1 << 16
REPLIES_MIN = 50


class FaultyLink:
    """Passes bytes on between `url` and the server at a unix socket.

    Once in `every_s`, for `silent_s`, nothing comes back. Connections that lost something are closed then. What they
    sent meanwhile reaches the server at once, or, where the link is late, `late_s` after that. A machine may be so busy
    that a crawl has less than `REPLIES_MIN` replies in `every_s`; the silence waits for them then, or the crawl would
    never get on.

    Attributes:
        lost: connections that lost something.
        delivered: those whose requests arrived late.
    """

    def __init__(self, socket_path: Path, *, every_s: float, silent_s: float, late_s: float = 0) -> None:
        self._socket_path = socket_path
        self._every_s, self._silent_s, self._late_s = every_s, silent_s, late_s
        self._is_silent = False
        self._is_cut = False
        self._replies = 0  # since the last silence
        self._broken: set[asyncio.StreamWriter] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._held: dict[asyncio.StreamWriter, bytearray] = {}  # by the connection to the server
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self.lost = 0
        self.delivered = 0
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """From now on nothing passes in either direction, and nobody is told."""
        self._is_cut = True

    def heal(self) -> None:
        """End a cut. Connections that lost something are closed."""
        self._is_cut = False
        self._loop.call_soon_threadsafe(self._close_broken)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
        self._ready.set()
        while not await self._stopped_within(self._every_s):
            if self._replies < REPLIES_MIN and not self._is_cut:
                continue
            self._replies = 0
            self._is_silent = True
            await self._stopped_within(self._silent_s)
            self._is_silent = False
            self._close_broken()
            self._loop.call_later(self._late_s, self._deliver, list(self._held.items()))
            self._held.clear()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _deliver(self, held: list[tuple[asyncio.StreamWriter, bytearray]]) -> None:
        for upstream, data in held:
            upstream.write(bytes(data))
            self.delivered += 1

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, upstream = await asyncio.open_unix_connection(self._socket_path)
        self._writers |= {writer, upstream}
        back = asyncio.ensure_future(self._pass_back(server_reader, writer))
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(BYTES_AT_ONCE):
                if self._is_cut or (writer in self._broken and not self._late_s):
                    self._break(writer)
                elif upstream in self._held or (self._is_silent and self._late_s):
                    self._held.setdefault(upstream, bytearray()).extend(data)
                    self._break(writer)
                else:
                    upstream.write(data)
        writer.close()
        if not self._late_s:  # else the server may have to hear of what is held
            back.cancel()
            upstream.close()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await self._pass_replies(reader, writer)

    async def _pass_replies(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(BYTES_AT_ONCE):
            if self._is_silent or self._is_cut or writer in self._broken:
                self._break(writer)
            elif not writer.is_closing():
                self._replies += 1
                writer.write(data)

    def _close_broken(self) -> None:
        for writer in self._broken:
            writer.close()
        self._broken.clear()

    def _break(self, writer: asyncio.StreamWriter) -> None:
        if writer not in self._broken:
            self._broken.add(writer)
            self.lost += 1
