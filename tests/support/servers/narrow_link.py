"""A web behind a link that is too narrow for it: all connections share the bytes a second, as through a full router.

Every path of every host is a page of the same size, without links; robots.txt is not there. A page whose client went
before it was sent whole is counted as broken.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Self

from bigcrawl_simweb.basics.addresses import address_of, origin_of
from bigcrawl_simweb.serve.listen import open_listeners

PAGE_BYTES = 20_000
TICK_S = 0.01
_BODY = b"<!DOCTYPE html><title>A page</title><p>" + b"text " * (PAGE_BYTES // 5)
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
_NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class NarrowLink:
    """A server in a thread of its own; `bytes_per_s` may be changed while it serves."""

    def __init__(self, hosts: int, bytes_per_s: int) -> None:
        self.hosts = hosts
        self.bytes_per_s = bytes_per_s
        self.whole = 0
        self.broken = 0
        self.at_once: list[int] = []  # pages on their way, at each tick that had any
        self._left: dict[asyncio.StreamWriter, bytes] = {}
        self._listeners = open_listeners(map(address_of, range(hosts)), 0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._stop = asyncio.Event()
        self.port: int = self._listeners[0].getsockname()[1]

    def urls(self, pages: int) -> list[str]:
        """So many pages of each host, host after host for each page."""
        origins = [origin_of(address_of(host), self.port) for host in range(self.hosts)]
        return [f"{origin}/{page}.html" for page in range(pages) for origin in origins]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        servers = [await asyncio.start_server(self._answer, sock=each) for each in self._listeners]
        sent_s = self._loop.time()
        while not self._stop.is_set():
            await asyncio.sleep(TICK_S)
            now_s = self._loop.time()
            self._send(now_s - sent_s)
            sent_s = now_s
        for server in servers:
            server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET /robots.txt "):
                    writer.write(_NOTHING)
                else:
                    self._left[writer] = _PAGE
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.broken += self._left.pop(writer, None) is not None
            writer.close()

    def _send(self, passed_s: float) -> None:
        """Give every page that is on its way its share of the time that has passed: a busy machine's ticks are late."""
        if not self._left:
            return
        self.at_once.append(len(self._left))
        share = max(1, round(self.bytes_per_s * passed_s / len(self._left)))
        for writer, left in list(self._left.items()):
            writer.write(left[:share])
            if len(left) > share:
                self._left[writer] = left[share:]
            else:
                del self._left[writer]
                self.whole += 1
