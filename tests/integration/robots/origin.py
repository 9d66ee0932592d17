"""A server for many hosts, each of them one case: answers by path, and a log of what was asked."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.integration.downloads.certificate import write_certificate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path is answered with; without a status, the connection is closed before any answer."""

    status: int | None = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/plain"),)

    def encoded(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in self.headers)]
        head = "\r\n".join([*lines, f"Content-Length: {len(self.body)}", "Connection: close", "", ""])
        return head.encode("latin-1") + self.body


@dataclass(slots=True)
class Host:
    """One origin: where it listens, what it answers (several answers of a path one after the other), what was asked.

    Times are monotonic seconds, each taken after a request has come and before it is answered.
    """

    origin: str = ""
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def times_of(self, target: str) -> list[float]:
        """When a target was asked for."""
        return [at for at, each in zip(self.times, self.asked, strict=True) if each == target]

    def answer(self, target: str) -> bytes | None:
        """The next answer to a target, and the last one for ever; a page where nothing is said."""
        times = self.asked.count(target)
        self.asked.append(target)
        self.times.append(time.monotonic())
        answers = self.answers.get(target)
        if not answers:
            return PAGE
        chosen = answers[min(times, len(answers) - 1)]
        return None if chosen.status is None else chosen.encoded()


class Origin:
    """Hosts on addresses of their own, all served by one thread."""

    def __init__(self, work: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._cleanup = ExitStack()
        self._servers: list[asyncio.Server] = []
        self._certificate = work / "certificate.pem"

    def __enter__(self) -> Self:
        write_certificate(self._certificate, "127.0.0.1")
        thread = threading.Thread(target=self._loop.run_forever, name="origin")
        thread.start()
        self._cleanup.callback(self._loop.close)
        self._cleanup.callback(thread.join)
        self._cleanup.callback(self._loop.call_soon_threadsafe, self._loop.stop)
        self._cleanup.callback(lambda: asyncio.run_coroutine_threadsafe(self._close(), self._loop).result())
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def listen(self, number: int, scheme: str = "http") -> Host:
        """Add an origin at address `number`; each has a port of its own, also of one address."""
        host, address = Host(), f"127.84.{1 + number // 250}.{1 + number % 250}"
        port = asyncio.run_coroutine_threadsafe(self._listen(host, address, scheme), self._loop).result()
        host.origin = f"{scheme}://{address}:{port}"
        return host

    async def _listen(self, host: Host, address: str, scheme: str) -> int:
        context = None
        if scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                answer = host.answer(head.split(b" ", 2)[1].decode("latin-1"))
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, address, 0, ssl=context)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
