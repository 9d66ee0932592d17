"""One client's connection to the simulated web.

Theory of operation: request heads are stamped with their start as they arrive, and answered one after the other. An
exchange ends when the kernel receives its last bytes. It is stamped just before; otherwise a client that is faster than
this process would seem to return too soon.

    state        left when
    idle         a head is complete                           -> sending, or waiting if its answer is delayed
    waiting      the next piece is due (a timer)              -> sending
    sending      the kernel has all of it: the line is written -> the next waiting head, idle, hanging or closing
                 the next piece is not due yet                -> waiting
    hanging      the client leaves; no more is read
    tunnel       TLS is begun, and all further heads are for the host of CONNECT -> idle
    closing      our side is shut down; the client closes its own, or takes too long. Closing at once could answer
                 unread bytes with a reset, which destroys unread data of the client.
    any          the client leaves: open exchanges are logged with status 499, except an answer that the client must
                 end. While no data is being sent, the end of the client's data counts as leaving: a client that timed
                 out looks like this, and no client closes only half.

Sockets are used directly, because a transport hides when the kernel received bytes, and short connections cost a third.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.serve.http1 import RequestParser
from bigcrawl_simweb.serve.sending import NO_FAULT, ConnectionEnding

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from bigcrawl_simweb.basics.answer import Answer
    from bigcrawl_simweb.serve.http1 import ArrivedRequest, RequestHead
    from bigcrawl_simweb.serve.sending import AnswerDelivery

_READ_BYTES: Final = 16_384
# A connection's share of a turn.
_TURN_BYTES: Final = 262_144
# How long a client may keep its side open after we have closed ours.
_CLOSING_S: Final = 2.0
_NOTHING: Final = memoryview(b"")
_RESET: Final = struct.pack("ii", 1, 0)
# Offsets in tcp_info of the time since data and an acknowledgement last came in, in ms (tcp(7)); the kernel counts in
# ticks of at most 10 ms.
_LAST_DATA_RECV_AT: Final = 52
_LAST_ACK_RECV_AT: Final = 56
_TICK_MS: Final = 10
# TLS is not ready for this call; the same call is repeated when the socket is ready.
_NOT_NOW: Final = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Destination(NamedTuple):
    host: str
    server: str
    port: int


class ConnectionServer(Protocol):
    now_ms: Callable[[], int]
    tls: ssl.SSLContext | None

    def destination_of(self, head: RequestHead | None, local: str) -> Destination: ...

    def answer(self, arrived: ArrivedRequest, place: Destination, keep_alive: bool) -> tuple[Answer, AnswerDelivery]:
        """Return the answer to a request and its delivery; `keep_alive` is the client's wish."""

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
    ) -> None: ...

    def record_departure(self, connection: ServerConnection) -> None: ...


class _OpenExchange(NamedTuple):
    arrived: ArrivedRequest
    place: Destination
    answer: Answer
    delivery: AnswerDelivery
    turn_ms: int


class ServerConnection:
    __slots__ = (
        "_client",
        "_current",
        "_end_ms",
        "_eof",
        "_incoming",
        "_is_closing",
        "_is_reading",
        "_is_writing",
        "_keep_alive",
        "_local",
        "_loop",
        "_piece",
        "_sent_bytes",
        "_server",
        "_sock",
        "_through",
        "_timer",
        "_unsent",
    )

    def __init__(
        self, server: ConnectionServer, loop: asyncio.AbstractEventLoop, sock: socket.socket, client: str
    ) -> None:
        self._server = server
        self._loop = loop
        self._sock = sock
        self._client = client
        self._local: str = sock.getsockname()[0]
        self._incoming = RequestParser()
        self._current: _OpenExchange | None = None
        self._piece: tuple[int, bytes] | None = None
        self._unsent = _NOTHING
        self._sent_bytes = 0
        self._end_ms = 0
        self._keep_alive = True
        self._eof = False
        self._is_closing = False
        self._is_writing = False
        self._timer: asyncio.TimerHandle | None = None
        self._through: RequestHead | None = None
        self._is_reading = True
        loop.add_reader(sock, self._on_readable)

    def abandon(self) -> None:
        """Close at once, and log open exchanges as if the client had disconnected."""
        self._let_go(self._server.now_ms())

    def _on_readable(self) -> None:
        try:
            late_ms = _unread_ms(self._sock)
            data = self._sock.recv(_READ_BYTES)  # no less than a record of TLS
        except _NOT_NOW:
            return
        except OSError:
            self._end_all()
            return
        if not data:
            self._handle_end()
        else:
            self._incoming.feed(data, late_ms)
            self._serve_next()

    def _handle_end(self) -> None:
        self._eof = True
        self._set_reading(False)
        if self._current is None or not self._is_writing:
            self._end_all()

    def _ignore_input(self) -> None:
        self._incoming.stop()
        self._set_reading(not self._eof)

    def _serve_next(self) -> None:
        while self._current is None and self._incoming and not self._is_closing:
            self._begin_answer(self._incoming.pop())
        if self._is_closing:
            return
        if not self._eof:
            self._set_reading(self._incoming.wants_more)
        elif self._current is None:
            self._end_all()

    def _begin_answer(self, arrived: ArrivedRequest) -> None:
        server, through = self._server, self._through
        if through is not None and arrived.head is not None:
            meant = arrived.head._replace(host=through.host, proxy_port=through.proxy_port)
            arrived = arrived._replace(head=meant)
        head = arrived.head
        self._keep_alive = self._keep_alive and head is not None and head.keep_alive
        place = server.destination_of(head, self._local)
        answer, delivery = server.answer(arrived, place, self._keep_alive)
        self._current = _OpenExchange(arrived, place, answer, delivery, server.now_ms())
        self._send_due()

    def _go_on(self) -> None:
        self._timer = None
        self._send_due()
        self._serve_next()

    def _send_due(self) -> None:
        share = _TURN_BYTES
        while share > 0:
            if not self._unsent and not self._take_piece():
                self._set_writing(False)
                return
            end_ms = self._server.now_ms()
            try:
                sent_bytes = self._sock.send(self._unsent[:share])
            except _NOT_NOW:
                break
            except OSError:
                self._end_all()
                return
            self._end_ms = end_ms
            # An empty slice would keep the whole answer in memory while the connection is idle.
            self._unsent = self._unsent[sent_bytes:] if sent_bytes < len(self._unsent) else _NOTHING
            self._sent_bytes += sent_bytes
            share -= sent_bytes
        self._set_writing(True)

    def _take_piece(self) -> bool:
        """Make the next piece current. Return False if there is none, or it is not yet due."""
        exchange = self._current
        while exchange is not None and not self._unsent:
            piece = self._piece or next(exchange.delivery.pieces, None)
            if piece is None:
                self._end_exchange(exchange)
                return False
            self._piece = None
            due_ms, data = piece
            early_ms = exchange.turn_ms + due_ms - self._server.now_ms() if due_ms else 0
            if early_ms > 0:
                self._piece = piece
                self._wait_to_send(early_ms)
                return False
            self._unsent = memoryview(data)
        return True

    def _wait_to_send(self, wait_ms: int) -> None:
        if self._eof:
            self._end_all()
        else:
            self._timer = self._loop.call_later(wait_ms / 1000, self._go_on)

    def _end_exchange(self, exchange: _OpenExchange) -> None:
        ending = exchange.delivery.ending
        if ending is ConnectionEnding.HANG:
            self._ignore_input()
            if self._eof:
                self._end_all()
            return
        if ending is ConnectionEnding.TUNNEL:
            self._begin_tls(exchange.arrived.head)
            return
        if ending is ConnectionEnding.RESET:
            self._end_ms = self._server.now_ms()
        self._log_exchange(exchange.answer.status, self._end_ms)
        if ending is ConnectionEnding.RESET:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._end_all()
        elif ending is ConnectionEnding.CLOSE:
            self._close()

    def _begin_tls(self, head: RequestHead | None) -> None:
        assert self._server.tls is not None
        self._current, self._sent_bytes, self._through = None, 0, head
        self._incoming = RequestParser()
        self._set_writing(False)
        self._set_reading(False)
        self._sock = self._server.tls.wrap_socket(self._sock, server_side=True, do_handshake_on_connect=False)
        self._set_reading(True)

    def _log_exchange(self, status: int, end_ms: int) -> None:
        exchange = self._current
        assert exchange is not None
        self._server.log_exchange(
            exchange.arrived,
            end_ms,
            self._client,
            exchange.place,
            status,
            self._sent_bytes,
            exchange.delivery.fault,
            exchange.answer.headers,
        )
        self._current = None
        self._sent_bytes = 0

    def _close(self) -> None:
        self._is_closing = True
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._eof = True  # the client has reset the connection
        if self._eof:
            self._end_all()
        else:
            self._ignore_input()
            self._timer = self._loop.call_later(_CLOSING_S, self._end_all)

    def _end_all(self) -> None:
        """End open exchanges after the client has left.

        If a client only waited and then reset the connection, the kernel does not know when.
        """
        is_timed = self._eof or self._is_writing
        self._let_go(self._server.now_ms() - (_unheard_ms(self._sock) if is_timed else 0))

    def _let_go(self, gone_ms: int) -> None:
        self._is_closing = True
        if self._current is not None:
            delivery, arrived = self._current.delivery, self._current.arrived
            status = self._current.answer.status if delivery.is_ended_by_client else ABORTED_STATUS
            self._log_exchange(status, max(gone_ms, arrived.start_ms))
        while self._incoming:
            arrived = self._incoming.pop()
            place = self._server.destination_of(arrived.head, self._local)
            self._server.log_exchange(arrived, max(gone_ms, arrived.start_ms), self._client, place, ABORTED_STATUS)
        if self._timer:
            self._timer.cancel()
        self._set_reading(False)
        self._set_writing(False)
        self._sock.close()
        self._server.record_departure(self)

    def _set_reading(self, wanted: bool) -> None:
        if wanted is not self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self._sock, self._on_readable)
            else:
                self._loop.remove_reader(self._sock)

    def _set_writing(self, wanted: bool) -> None:
        if wanted is not self._is_writing:
            self._is_writing = wanted
            if wanted:
                self._loop.add_writer(self._sock, self._go_on)
            else:
                self._loop.remove_writer(self._sock)


def _unread_ms(sock: socket.socket) -> int:
    """Return how long unread data has waited, minus 0 to 20 ms, because a server without CPU time reads late.

    Never more than the true time, so that no gap between two requests is logged shorter than it was.
    """
    return max(0, _ago_ms(sock, _LAST_DATA_RECV_AT) - _TICK_MS)


def _unheard_ms(sock: socket.socket) -> int:
    """Return the time since the client last sent data, their end or an acknowledgement, plus 0 to 20 ms.

    Never less than the true time, so that no gap after a client that left is logged shorter than it was.
    """
    return _ago_ms(sock, _LAST_ACK_RECV_AT) + _TICK_MS


def _ago_ms(sock: socket.socket, at: int) -> int:
    return int.from_bytes(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, at + 4)[at:], sys.byteorder)
