"""A raw HTTP server inside the test's own event loop: every byte it sends, and when, is the test's."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


class _Reader(asyncio.StreamReader):
    """A reader that says when its client is gone, without being asked for data."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: BaseException) -> None:
        super().set_exception(exc)  # type: ignore[arg-type]
        self.gone.set()


class Server:
    """Serves `answer(path, writer)` on one loopback address; connections stay open until a side closes them."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.port = 0
        self.paths: list[str] = []
        self.heads: list[bytes] = []
        self.accepted = 0  # connections so far
        self.open = 0  # connections now

    async def start(self, address: str) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: asyncio.StreamReaderProtocol(_Reader(), self._serve), address, 0)
        self.port = server.sockets[0].getsockname()[1]
        self.address = address
        return server

    def url(self, path: str = "/") -> str:
        return f"http://{self.address}:{self.port}{path}"

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so that changes only with a request or a connection."""
        async with asyncio.timeout(60):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def hang_up(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _Reader)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        self.open += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer_all(reader, writer)
        finally:
            self.open -= 1
            self._tasks.discard(task)
            self._changed.set()
            writer.close()

    async def _answer_all(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            self.heads.append(head)
            self.paths.append(path)
            self._changed.set()
            # A client that hangs up meanwhile is noticed at once, whatever the answer waits for.
            answering = asyncio.ensure_future(self._answer(path, writer))
            gone = asyncio.ensure_future(reader.gone.wait())
            try:
                await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    return
                await answering
            finally:
                answering.cancel()
                gone.cancel()
                await asyncio.gather(answering, gone, return_exceptions=True)


@asynccontextmanager
async def serving(answer: Answer, address: str = "127.0.0.1") -> AsyncIterator[Server]:
    """A server that is gone at the end, connections and all."""
    made = Server(answer)
    listening = await made.start(address)
    try:
        yield made
    finally:
        listening.close()
        await made.hang_up()


def ok(body: bytes = b"ok") -> bytes:
    """A well-formed answer."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def sends(*parts: bytes, closes: bool = False) -> Answer:
    """Answers every request with these bytes, in as many writes."""

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        if closes:
            writer.close()

    return answer
