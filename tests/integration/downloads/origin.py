"""The servers that the cases are fetched from: raw asyncio streams in a thread, so that every byte is the table's.

plain, other    HTTP on two addresses
tls             HTTPS with a certificate that signs itself
named           HTTP under a name: localhost, on all its addresses
proxy           answers requests in absolute form itself, and opens CONNECT tunnels
flaky1..5       HTTP, for rows that must not rest each other's host
odd1..4         HTTP, for rows after which bigcrawl reads a server by its own reader
deaf            an address where connections are refused
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from tests.integration.downloads.case import Answer, End, answer, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

HELD_S_MAX = 20
ADDRESSES = {
    "plain": "{net}.0.1",
    "other": "{net}.0.2",
    "tls": "{net}.0.3",
    "proxy": "{net}.0.4",
    "named": "localhost",
    **{f"odd{number}": f"{{net}}.3.{number}" for number in range(1, 5)},
    **{f"flaky{number}": f"{{net}}.2.{number}" for number in range(1, 6)},
}
_DEAF = "{net}.0.5"
_UNKNOWN = answer(b"no such case", status="404 Not Found")


@dataclass(frozen=True, slots=True)
class Hit:
    """A request as its bytes came: `headers` in the order and case of the wire, all texts latin-1.

    `peer` is the address it came from, `at` the second of the monotonic clock when its head was read.
    """

    place: str
    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    peer: str
    at: float

    @property
    def case(self) -> str:
        """The first segment of the path; for a CONNECT the whole target."""
        path = self.target
        if "://" in path:
            path = "/" + path.partition("://")[2].partition("/")[2]
        return path if self.method == "CONNECT" else path.removeprefix("/").partition("/")[0].partition("?")[0]

    def told(self, words: Callable[[str], str]) -> Hit:
        """The same in other words."""
        return replace(
            self,
            target=words(self.target),
            headers=tuple((name, words(value)) for name, value in self.headers),
            body=words(self.body.decode("latin-1")).encode("latin-1"),
            peer=words(self.peer),
        )

    def get(self, name: str) -> list[str]:
        """All values of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Origin:
    """All servers; `places` tells where they are, `hits` what they were asked.

    Args:
        answers: by case.
        certificate: key and certificate in one PEM file.
        net: the first half of all its addresses, "127.87": two origins can stand beside each other.
    """

    def __init__(self, answers: Mapping[str, tuple[Answer, ...]], certificate: Path, net: str) -> None:
        self.net = net
        self._answers = answers
        self._certificate = certificate
        self._counts: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="origin")
        self._cleanup = contextlib.ExitStack()
        self.hits: list[Hit] = []
        self.places: dict[str, str] = {"net": net}

    def __enter__(self) -> Self:
        self._thread.start()
        self._cleanup.callback(self._loop.close)
        self._cleanup.callback(self._thread.join)
        self._cleanup.callback(self._loop.call_soon_threadsafe, self._loop.stop)
        self._cleanup.callback(self._run, self._end())
        self._run(self._begin())
        deaf = self._cleanup.enter_context(socket.socket())
        address = fill(_DEAF, self.places)
        deaf.bind((address, 0))  # bound and not listening: nobody else can take the port either
        self.places["deaf"] = f"http://{address}:{deaf.getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def neutral(self, text: str) -> str:
        """The text with a name in the place of each server's address, so that two origins are told of alike.

        Each name is as long as what it stands for: no length, and so no count of bytes, tells them apart.
        """
        for name, place in self.places.items():
            server = place.partition("://")[2]
            if server:
                text = re.sub(re.escape(server), f"{name:_>{len(server)}}", text, flags=re.IGNORECASE)
        return text.replace(self.net, "127.__")

    def take_hits(self) -> list[Hit]:
        """Everything since the last call, in neutral words; answers begin with the first again."""
        hits, self.hits = self.hits, []
        self._counts.clear()
        return [hit.told(self.neutral) for hit in hits]

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(120)  # type: ignore[arg-type]

    async def _begin(self) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._certificate)
        for place, template in ADDRESSES.items():
            address = fill(template, self.places)
            secure = context if place == "tls" else None
            port = 0
            for one in _addresses_of(address):
                server = await asyncio.start_server(self._serving(place), one, port, ssl=secure)
                self._servers.append(server)
                port = server.sockets[0].getsockname()[1]
            self.places[place] = f"{'https' if secure else 'http'}://{address}:{port}"

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _serving(self, place: str):
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                # The client may be gone at any moment.
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._serve(place, reader, writer)
            finally:
                self._tasks.discard(task)
                writer.close()

        return serve

    async def _serve(self, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            first = await reader.readexactly(1)
            if first == b"\x16":  # a TLS client; as nginx answers it
                writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                return
            hit = await _read_hit(place, first, reader, writer.get_extra_info("peername")[0])
            self.hits.append(hit)
            if hit.method == "CONNECT":
                await self._tunnel(hit, reader, writer)
                return
            for part in self._answer_of(hit):
                if isinstance(part, End):
                    await _end_connection(part, reader, writer)
                    return
                if isinstance(part, float):
                    await asyncio.sleep(part)
                else:
                    writer.write(part)
                    await writer.drain()

    def _answer_of(self, hit: Hit) -> Answer:
        answers = self._answers.get(hit.case, (_UNKNOWN,))
        nth = self._counts[hit.case]
        self._counts[hit.case] += 1
        filled: Answer = answers[min(nth, len(answers) - 1)]
        places = {name: place.encode() for name, place in self.places.items()}
        return tuple(_with_places(part, places) if isinstance(part, bytes) else part for part in filled)

    async def _tunnel(self, hit: Hit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Only to our own TLS server, and not for who brings the credentials `user:wrong`."""
        if hit.get("Proxy-Authorization") == ["Basic dXNlcjp3cm9uZw=="]:
            writer.write(answer(b"go away", status="407 Proxy Authentication Required")[0])  # type: ignore[arg-type]
            return
        host, _, port = hit.target.partition(":")
        assert f"https://{host}:{port}" == self.places["tls"]
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))


def _addresses_of(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _with_places(part: bytes, places: Mapping[str, bytes]) -> bytes:
    """As `fill`, in an answer; nothing longer than a head's text is looked through."""
    if len(part) > 4096 or b"{" not in part:
        return part
    return fill(part.decode("latin-1"), {name: place.decode() for name, place in places.items()}).encode("latin-1")


async def _read_hit(place: str, begun: bytes, reader: asyncio.StreamReader, peer: str) -> Hit:
    head = (begun + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = first.split(" ")
    headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    lengths = [int(value) for name, value in headers if name.lower() == "content-length"]
    body = await reader.readexactly(lengths[0]) if lengths else b""
    return Hit(place, method, target, version, headers, body, peer, time.monotonic())


async def _end_connection(end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if end is End.HOLD:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HELD_S_MAX):
                await reader.read(1)
    elif end is End.RESET:
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
