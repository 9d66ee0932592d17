"""Serves a web over HTTP/1.1 and logs every request. One thread, no timeouts, standard library only.

The requested host is named by a target in absolute form, as sent to a proxy. Otherwise it is in the Host header, if
that name belongs to the connection's address. Otherwise the client made a mistake, and the address is the host.
"""

from __future__ import annotations

import asyncio
import errno
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.addresses import index_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.line_file import now_ms
from bigcrawl_simweb.serve.access_log import LogLine
from bigcrawl_simweb.serve.connection import Destination, ServerConnection
from bigcrawl_simweb.serve.http1 import retry_after_ms
from bigcrawl_simweb.serve.sending import NO_FAULT, open_tunnel, plan_delivery, refusal_answer

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Sequence

    from bigcrawl_simweb.serve.access_log import AccessLog
    from bigcrawl_simweb.serve.http1 import ArrivedRequest, RequestHead
    from bigcrawl_simweb.serve.sending import AnswerDelivery
    from bigcrawl_simweb.serve.served import ServedWeb

# Few enough that processes sharing a socket also share its connections.
_ACCEPTS_A_TURN: Final = 8
# Errors of accept(2) if files or memory are used up; the end of an open connection may make room.
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_ROOM_PAUSE_S: Final = 0.1
# Cached names: some ten megabytes.
_NAMES_KEPT: Final = 65_536


class SimServer:
    """A server that runs between `start` and `stop`. With `tls`, it is a proxy for https, too."""

    def __init__(
        self,
        web: ServedWeb,
        sockets: Sequence[socket.socket],
        log: AccessLog | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.web = web
        self.tls = tls
        self.port: int = sockets[0].getsockname()[1]
        self.requests = 0
        self.now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._sockets = sockets
        self._log = log
        self._connections: set[ServerConnection] = set()
        self._addresses: dict[str, str | None] = {}
        self._date = (0, "")

    def __repr__(self) -> str:
        return f"SimServer(port={self.port}, connections={len(self._connections)}, requests={self.requests})"

    async def start(self) -> None:
        for sock in self._sockets:
            self._listen_on(sock)

    async def stop(self) -> None:
        for sock in self._sockets:
            if sock.fileno() >= 0:
                self._loop.remove_reader(sock)
                sock.close()
        for connection in tuple(self._connections):
            connection.abandon()

    def destination_of(self, head: RequestHead | None, local: str) -> Destination:
        if head is not None:
            if head.proxy_port:
                return Destination(head.host, self._address_of(head.host) or "-", head.proxy_port)
            if head.host and self._address_of(head.host) == local:
                return Destination(head.host, local, self.port)
        return Destination(local, local, self.port)

    def answer(self, arrived: ArrivedRequest, place: Destination, keep_alive: bool) -> tuple[Answer, AnswerDelivery]:
        """Return the answer to a request and its delivery; a bug in the web makes it a 500, and is reported."""
        head = arrived.head
        if head is not None and head.method == "CONNECT" and self.tls is not None and place.server != "-":
            return Answer(200), open_tunnel()
        try:
            answer = self._answer_of_web(arrived, place)
            return answer, self._plan_delivery(answer, head, keep_alive)
        except Exception as error:  # noqa: BLE001 - as the docstring says
            context = {"message": f"{self.web!r} fails at {head and head.target} of {place.host}", "exception": error}
            self._loop.call_exception_handler(context)
            answer = refusal_answer(500)
            return answer, self._plan_delivery(answer, head, keep_alive)

    def _answer_of_web(self, arrived: ArrivedRequest, place: Destination) -> Answer:
        start_ms, head, status = arrived
        if head is None:
            return refusal_answer(status)
        if head.method not in ("GET", "HEAD"):
            return refusal_answer(405, ("Allow", "GET, HEAD"))
        if place.server == "-":
            return refusal_answer(421)
        return self.web.answer(place.host, head.target, place.port, at_ms=start_ms, conditions=head.conditions)

    def _plan_delivery(self, answer: Answer, head: RequestHead | None, keep_alive: bool) -> AnswerDelivery:
        return plan_delivery(
            answer,
            head_only=head is not None and head.method == "HEAD",
            is_old=head is not None and head.is_old,
            keep_alive=keep_alive,
            date=self._http_date(),
        )

    def log_exchange(
        self,
        arrived: ArrivedRequest,
        end_ms: int,
        client: str,
        place: Destination,
        status: int,
        sent_bytes: int = 0,
        fault: str = NO_FAULT,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.requests += 1
        if self._log is None:
            return
        head = arrived.head
        method, target = (head.method, head.target) if head else ("-", "-")
        pause_ms = _pause_ms(headers, end_ms) if status >= 300 else 0
        host, server, _ = place
        line = LogLine(
            arrived.start_ms, end_ms, client, host, server, method, target, status, sent_bytes, fault, pause_ms
        )
        try:
            self._log.write(line)
        except OSError as error:
            if not self.failed.done():
                self.failed.set_exception(error)

    def record_departure(self, connection: ServerConnection) -> None:
        self._connections.discard(connection)

    def _listen_on(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0:
            self._loop.add_reader(sock, self._accept_connections, sock)

    def _accept_connections(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._loop.remove_reader(listener)
                self._loop.call_later(_NO_ROOM_PAUSE_S, self._listen_on, listener)
                return
            sock.setblocking(False)
            self._connections.add(ServerConnection(self, self._loop, sock, f"{peer[0]}:{peer[1]}"))

    def _http_date(self) -> str:
        second = self.now_ms() // 1000
        if second != self._date[0]:
            self._date = (second, formatdate(second, usegmt=True))
        return self._date[1]

    def _address_of(self, name: str) -> str | None:
        try:
            return self._addresses[name]
        except KeyError:
            found = name if index_of(name) is not None else self.web.address_of(name)
            if len(self._addresses) >= _NAMES_KEPT:
                self._addresses.clear()
            self._addresses[name] = address = found if isinstance(found, str) else None
            return address


def _pause_ms(headers: tuple[tuple[str, str], ...], end_ms: int) -> int:
    for name, value in headers:
        if name == "Retry-After":
            return retry_after_ms(value, end_ms)
    return 0
