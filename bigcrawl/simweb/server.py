"""Serves a `Web` over HTTP/1.1 and logs every request. One thread, no timeouts, standard library only.

Theory of operation: heads are taken from a connection as they arrive and stamped with their start; their
answers go out one after the other. An exchange ends when its last bytes are handed to the kernel, stamped just
before: stamped after, a client that was quicker than this process would seem to come back too soon. The
transport's write buffer has no slack (both limits 0): "nothing buffered" and `resume_writing` mean just that.

    state        leaves it when
    idle         a head is complete                          -> thinking, or sending when the page is not slow
    thinking     the page's delay is over                    -> sending
    sending      the kernel has all of it: the line is written -> the next waiting head, idle, or closed
    any          the client is gone: the current exchange and those waiting are logged as 499
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.simweb.access_log import LogLine
from bigcrawl.simweb.checker import ABORTED_STATUS
from bigcrawl.simweb.http1 import BadRequestError, RequestHead, encode_answer, parse_head
from bigcrawl.simweb.listen import BACKLOG
from bigcrawl.simweb.markup import render_notice
from bigcrawl.simweb.web import Page

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from bigcrawl.simweb.access_log import AccessLog
    from bigcrawl.simweb.web import Web

_HEAD_BYTES_MAX: Final = 16_384
# A client that sends requests without waiting for answers is read no further than this many ahead.
_WAITING_MAX: Final = 16


def wall_clock_ms() -> Callable[[], int]:
    """A clock of ms since the epoch that does not jump when the machine's is set: gaps must stay true."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + offset_ns) // 1_000_000


class _Arrived(NamedTuple):
    start_ms: int
    head: RequestHead | None
    refusal: int


class SimServer:
    """A running server: made with sockets that listen, served between `start` and `stop`."""

    def __init__(self, web: Web, sockets: Sequence[socket.socket], log: AccessLog | None = None) -> None:
        self.web = web
        self.port: int = sockets[0].getsockname()[1]
        self.requests = 0
        self.now_ms = wall_clock_ms()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sockets = sockets
        self._log = log
        self._listeners: list[asyncio.Server] = []
        self._connections: set[_Connection] = set()
        self._all_left = asyncio.Event()
        self._all_left.set()
        self._date = (0, "")

    def __repr__(self) -> str:
        return f"SimServer(port={self.port}, connections={len(self._connections)}, requests={self.requests})"

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            self._listeners.append(await loop.create_server(lambda: _Connection(self), sock=sock, backlog=BACKLOG))

    async def stop(self) -> None:
        """Close everything; exchanges that have not ended are logged as 499."""
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self._connections):
            connection.abandon()
        # An aborted transport reports its loss in the loop's next turn; the log must not close before.
        await self._all_left.wait()

    def date(self) -> str:
        """The Date header's value, written once a second."""
        second = self.now_ms() // 1000
        if second != self._date[0]:
            self._date = (second, formatdate(second, usegmt=True))
        return self._date[1]

    def record(self, line: LogLine) -> None:
        """Log an exchange; a log that cannot be written makes `failed` fail."""
        self.requests += 1
        if self._log is None:
            return
        try:
            self._log.write(line)
        except OSError as error:
            if not self.failed.done():
                self.failed.set_exception(error)

    def joined(self, connection: _Connection) -> None:
        self._connections.add(connection)
        self._all_left.clear()

    def left(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._all_left.set()


class _Connection(asyncio.Protocol):
    """One client's connection to one host."""

    def __init__(self, server: SimServer) -> None:
        self._server = server
        self._buffer = b""
        self._skip_bytes = 0
        self._deaf = False
        self._waiting: deque[_Arrived] = deque()
        self._current: _Arrived | None = None
        self._status = 0
        self._sent_bytes = 0
        self._keep_alive = True
        self._eof = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        self._host: str = transport.get_extra_info("sockname")[0]
        peer = transport.get_extra_info("peername")
        self._client = f"{peer[0]}:{peer[1]}" if peer else "-"
        self._server.joined(self)

    def data_received(self, data: bytes) -> None:
        if not self._deaf:
            self._buffer += data
            self._take_heads()
            self._advance()

    def eof_received(self) -> bool:
        """A client that only stopped sending still gets the answers it waits for."""
        self._eof = True
        return self._current is not None

    def resume_writing(self) -> None:
        if self._status:
            self._finish(self._status, self._server.now_ms())
            self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        now_ms = self._server.now_ms()
        if self._current:
            self._finish(ABORTED_STATUS, now_ms)
        while self._waiting:
            self._current = self._waiting.popleft()
            self._finish(ABORTED_STATUS, now_ms)
        self._server.left(self)

    def abandon(self) -> None:
        """Close without waiting for anything."""
        self._transport.abort()

    def _take_heads(self) -> None:
        """Move complete heads from the buffer to the queue, and pass over request bodies."""
        while len(self._waiting) < _WAITING_MAX and not self._deaf:
            skipped = min(self._skip_bytes, len(self._buffer))
            self._buffer = self._buffer[skipped:]
            self._skip_bytes -= skipped
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if len(head) > _HEAD_BYTES_MAX:
                self._refuse(431)
            elif end:
                self._buffer = rest
                self._take_head(head)
            else:
                break

    def _take_head(self, data: bytes) -> None:
        try:
            head = parse_head(data)
        except BadRequestError as error:
            self._refuse(error.status)
            return
        self._skip_bytes = head.body_bytes
        self._waiting.append(_Arrived(self._server.now_ms(), head, 0))

    def _refuse(self, status: int) -> None:
        """Answer with an error and read no more: where the next request starts is anybody's guess."""
        self._deaf = True
        self._buffer = b""
        self._waiting.append(_Arrived(self._server.now_ms(), None, status))

    def _advance(self) -> None:
        """Answer what waits, one after the other, until an answer takes its time."""
        while self._current is None and self._waiting and not self._transport.is_closing():
            self._current = self._waiting.popleft()
            self._take_heads()
            page = self._page(self._current)
            if page.delay_ms:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(page.delay_ms / 1000, self._send_and_advance, page)
            else:
                self._send(page)
        if self._eof and self._current is None:
            self._transport.close()
        elif len(self._waiting) < _WAITING_MAX:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _page(self, arrived: _Arrived) -> Page:
        head = arrived.head
        if head is None:
            return Page(arrived.refusal, (), render_notice(arrived.refusal))
        if head.method not in ("GET", "HEAD"):
            return Page(405, (("Allow", "GET, HEAD"),), render_notice(405))
        return self._server.web.page(self._host, head.target, self._server.port)

    def _send_and_advance(self, page: Page) -> None:
        self._timer = None
        self._send(page)
        self._advance()

    def _send(self, page: Page) -> None:
        assert self._current is not None
        head = self._current.head
        self._keep_alive = self._keep_alive and head is not None and head.keep_alive
        answer = encode_answer(
            page.status,
            page.headers,
            page.body,
            head_only=head is not None and head.method == "HEAD",
            keep_alive=self._keep_alive,
            date=self._server.date(),
        )
        self._status = page.status
        self._sent_bytes = len(answer)
        end_ms = self._server.now_ms()
        self._transport.write(answer)
        if not self._transport.is_closing() and self._transport.get_write_buffer_size() == 0:
            self._finish(page.status, end_ms)

    def _finish(self, status: int, end_ms: int) -> None:
        """The exchange has ended: log it, and close if it was the last."""
        assert self._current is not None
        start_ms, head, _ = self._current
        method, target = (head.method, head.target) if head else ("-", "-")
        sent_bytes = 0 if status == ABORTED_STATUS else self._sent_bytes
        self._server.record(LogLine(start_ms, end_ms, self._client, self._host, method, target, status, sent_bytes))
        self._current, self._status, self._sent_bytes = None, 0, 0
        if not self._keep_alive:
            self._transport.close()
