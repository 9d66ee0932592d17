"""A DNS server for the names of a simulated web, over UDP and TCP, on one loopback address and port.

It is authoritative for every name, so that no query leaves the machine. The web decides whether a name resolves, fails
or gets no answer (`address_of`).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.line_file import now_ms
from bigcrawl_simweb.basics.name_record import NameFault, NameRecord
from bigcrawl_simweb.serve.dns_wire import (
    BadQueryError,
    encode_addresses,
    encode_failure,
    encode_no_name,
    encode_refusal,
    has_type,
    is_query,
    parse_query,
    type_name,
)
from bigcrawl_simweb.serve.lookup_log import Lookup, LookupOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl_simweb.serve.dns_wire import Query
    from bigcrawl_simweb.serve.lookup_log import LookupLog
    from bigcrawl_simweb.serve.served import ServedWeb

_MESSAGE_BYTES_MAX: Final = 65_535
# Datagrams read in one turn, so that other connections get theirs.
_DATAGRAMS_A_TURN: Final = 64
# For bursts of queries while the process is busy; the system may grant less.
_RECEIVE_BUFFER_BYTES: Final = 4 << 20
# A port that is free for UDP is nearly always free for TCP.
_PORT_TRIES: Final = 20


class DnsServer:
    """A resolver that runs between `start` and `stop`.

    `ttl_s` applies to denials too. Without `log`, look-ups are only counted in `outcomes`. `failed` fails if the log
    cannot be written.
    """

    def __init__(self, web: ServedWeb, ttl_s: int = 300, log: LookupLog | None = None) -> None:
        self.port = 0
        self.outcomes: Counter[LookupOutcome] = Counter()
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._web = web
        self._ttl_s = ttl_s
        self._log = log
        self._datagrams: socket.socket | None = None
        self._listener: asyncio.Server | None = None
        self._connections: set[_TcpClient] = set()

    def __repr__(self) -> str:
        return f"DnsServer(port={self.port}, lookups={self.outcomes.total()})"

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> None:
        """Answer on this address; port 0 chooses a free one."""
        datagrams, listener = _bind_both(address, port)
        self.port = datagrams.getsockname()[1]
        self._datagrams = datagrams
        self._loop.add_reader(datagrams, self._read_datagrams, datagrams)
        self._listener = await self._loop.create_server(lambda: _TcpClient(self, self._connections), sock=listener)

    async def stop(self) -> None:
        if self._datagrams and self._listener:
            self._loop.remove_reader(self._datagrams)
            self._datagrams.close()
            self._listener.close()
            for connection in tuple(self._connections):
                connection.abandon()

    def answer(self, message: bytes, client: str, transport: str, send: Callable[[bytes], object]) -> None:
        """Count, log and answer a message, at once or when it is due."""
        reply, delay_ms = self._log_and_reply(message, client, transport)
        if reply is not None and delay_ms:
            self._loop.call_later(delay_ms / 1_000, send, reply)
        elif reply is not None:
            send(reply)

    def _log_and_reply(self, message: bytes, client: str, transport: str) -> tuple[bytes | None, int]:
        delay_ms = 0
        if not is_query(message):
            return None, 0
        name, record_type = "-", "-"
        try:
            query = parse_query(message)
        except BadQueryError as error:
            outcome, reply = LookupOutcome.REFUSED, encode_refusal(message, error.rcode)
        else:
            outcome, reply, delay_ms = self._resolve_query(query)
            name, record_type = query.name, type_name(query.record_type)
        self.outcomes[outcome] += 1
        if self._log:
            try:
                self._log.write(Lookup(now_ms(), client, transport, name, record_type, outcome))
            except OSError as error:
                if not self.failed.done():
                    self.failed.set_exception(error)
        return (reply if outcome is not LookupOutcome.SILENT else None), delay_ms

    def _resolve_query(self, query: Query) -> tuple[LookupOutcome, bytes, int]:
        found = self._web.address_of(query.name)
        if found is None:
            return LookupOutcome.NO_NAME, encode_no_name(query, self._ttl_s), 0
        if found is NameFault.SILENT:
            return LookupOutcome.SILENT, b"", 0
        if found is NameFault.SERVFAIL:
            return LookupOutcome.SERVFAIL, encode_failure(query), 0
        record = NameRecord((found,)) if isinstance(found, str) else found
        ttl_s = self._ttl_s if record.ttl_s is None else record.ttl_s
        wanted = [address for address in record.addresses if has_type(address, query.record_type)]
        outcome = LookupOutcome.FOUND if wanted else LookupOutcome.NO_DATA
        reply = encode_addresses(query, wanted, ttl_s, record.alias, record.alias_ttl_s)
        return outcome, reply, record.delay_ms

    def _read_datagrams(self, sock: socket.socket) -> None:
        for _ in range(_DATAGRAMS_A_TURN):
            try:
                message, peer = sock.recvfrom(_MESSAGE_BYTES_MAX)
            except OSError:  # no more datagrams, or an error about an earlier reply
                return
            self.answer(message, f"{peer[0]}:{peer[1]}", "udp", partial(_send_datagram, sock, peer))


class _TcpClient(asyncio.Protocol):
    """A client's TCP connection. Each message is preceded by its length, two bytes."""

    def __init__(self, resolver: DnsServer, connections: set[_TcpClient]) -> None:
        self._resolver = resolver
        self._connections = connections
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._client = f"{peer[0]}:{peer[1]}" if peer else "-"
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 2:
            end = 2 + int.from_bytes(self._buffer[:2])
            if len(self._buffer) < end:
                return
            message, self._buffer = self._buffer[2:end], self._buffer[end:]
            self._resolver.answer(message, self._client, "tcp", self._send_reply)

    def abandon(self) -> None:
        self._transport.abort()

    def _send_reply(self, reply: bytes) -> None:
        self._transport.write(len(reply).to_bytes(2) + reply)


def _send_datagram(sock: socket.socket, peer: tuple[str, int], reply: bytes) -> None:
    with suppress(OSError):  # a datagram that cannot be sent is lost, as on a network
        sock.sendto(reply, peer)


def _bind_both(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    for _ in range(0 if port else _PORT_TRIES - 1):
        with suppress(ConfigError):
            return _try_bind(address, port)
    return _try_bind(address, port)


def _try_bind(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        datagrams.setblocking(False)
        datagrams.bind((address, port))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, datagrams.getsockname()[1]))
    except OSError as error:
        datagrams.close()
        listener.close()
        remedy = "stop what uses it or choose another port" if error.errno == errno.EADDRINUSE else "choose another"
        raise ConfigError(f"port {port} of {address} cannot be used: {error.strerror}; {remedy}") from error
    return datagrams, listener
