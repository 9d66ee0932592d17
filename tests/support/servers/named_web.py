"""A tiny web of names for real crawls: a name server and an HTTP server on several addresses, in a thread."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self

from bigcrawl_simweb.serve.resolver import DnsServer
from tests.support.servers.arrivals import arrived_s
from tests.support.servers.name_server import Zone

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from typing import Any

    from tests.support.servers.name_server import Said

PORT_TRIES = 50


class Hit(NamedTuple):
    """A request: the address that was connected to, the host that was asked for, without its port, and the target.

    `at` is the second of the monotonic clock when it came in, `agent` the client's name for itself.
    """

    address: str
    host: str
    target: str
    at: float
    agent: str = ""


class NamedWeb:
    """Serves `pages` ("host/path" -> body, or a Location that begins with "->") at every one of its addresses.

    What is not listed is answered with 404. `{port}` in bodies and locations is the servers' port. It is a proxy
    too, for its own pages.
    """

    def __init__(
        self, addresses: Sequence[str], names: Mapping[str, Said | Sequence[Said]], pages: Mapping[str, str]
    ) -> None:
        self.zone = Zone(names)
        self.hits: list[Hit] = []
        self.port = 0
        self.name_server = ""
        self._addresses = addresses
        self._pages = pages
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="named-web")
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def hosts_at(self, address: str) -> set[str]:
        """The hosts that were asked for at an address."""
        return {hit.host for hit in self.hits if hit.address == address}

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    async def _start(self) -> None:
        self._resolver = DnsServer(self.zone, ttl_s=0)
        await self._resolver.start()
        self.name_server = f"127.0.0.1:{self._resolver.port}"
        for _ in range(PORT_TRIES):
            with suppress(OSError):
                await self._listen()
                return
            self._close_servers()
        raise RuntimeError("no port is free on all addresses")

    async def _listen(self) -> None:
        self.port = 0
        for address in self._addresses:
            server = await asyncio.start_server(self._serve, address, self.port)
            self._servers.append(server)
            self.port = server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        await self._resolver.stop()
        self._close_servers()

    def _close_servers(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = head.split(" ", 2)[1]
            if target.startswith("http://"):  # as a proxy is asked
                target = "/" + target.split("/", 3)[3]
            named = next(line for line in head.split("\r\n") if line.lower().startswith("host:"))
            host = named[5:].strip().rpartition(":")[0] or named[5:].strip()
            agent = next(
                (line[11:].strip() for line in head.split("\r\n") if line.lower().startswith("user-agent:")), ""
            )
            at = arrived_s(writer.get_extra_info("socket"))
            self.hits.append(Hit(writer.get_extra_info("sockname")[0], host, target, at, agent))
            writer.write(self._answer(f"{host}{target}"))
            await writer.drain()
        writer.close()

    def _answer(self, place: str) -> bytes:
        said = self._pages.get(place)
        if said is None:
            status, location, body = "404 Not Found", "", ""
        elif said.startswith("->"):
            status, location, body = "302 Found", f"Location: {said[2:].format(port=self.port)}\r\n", ""
        else:
            status, location, body = "200 OK", "", said.format(port=self.port)
        length = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        return f"HTTP/1.1 {status}\r\n{location}{length}\r\n{body}".encode()
