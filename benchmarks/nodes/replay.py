"""What one core of Redis can serve: the commands of a measured crawl, sent again as fast as a server answers.

While the nodes run, Redis is mostly idle, and each batch finds its caches cold and the core asleep. Its CPU a page says
little about the pages that it could serve. So each node keeps what it sends, with the time, and all of it is sent again
in that order, over one connection that never waits for a reply. A cluster's masters get their parts at the same time;
they have the same slots as the masters of the crawl.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Final, NamedTuple, Self

from bigcrawl.redisdb import script_texts
from bigcrawl.redisdb.connections import ConnectionPool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.nodes.servers import Master, Servers
    from bigcrawl.redisdb.scripts import Value

_HEAD: Final = struct.Struct("<dII")  # when, to which port, how many bytes
_MARK: Final = b"replayed"
SILENT_S_MAX: Final = 60.0


class RecordingConnections(ConnectionPool):
    """Keeps what it sends, in a file that all connections of a node share."""

    record: ClassVar[BinaryIO]
    port: int | None = None

    async def send_commands(self, rows: Sequence[Sequence[Value]]) -> list[object]:
        if self.port is None:
            self.port = getattr(self._make(), "port", 0)  # a unix socket has none
        packed = b"".join(map(_packed, rows))
        self.record.write(_HEAD.pack(time.monotonic(), self.port, len(packed)) + packed)
        return await super().send_commands(rows)


def _packed(row: Sequence[Value]) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in row]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Part(NamedTuple):
    """What one round trip sent to one server."""

    at_s: float
    port: int
    data: bytes


class Recorded(NamedTuple):
    """What the nodes sent, in its order: before the measurement, and during it; for each server."""

    warm_up: list[list[bytes]]
    measured: list[list[bytes]]

    @classmethod
    def read(cls, records: Iterable[Path], servers: Servers, since_s: float, until_s: float) -> Self:
        """Read the nodes' records of what they sent to these servers."""
        parts = sorted(part for path in records for part in _read(path))
        ports = [master.address if isinstance(master.address, int) else 0 for master in servers.masters]
        of_each = [[part for part in parts if part.port == port] for port in ports]
        return cls(
            [[part.data for part in some if part.at_s < since_s] for some in of_each],
            [[part.data for part in some if since_s <= part.at_s < until_s] for some in of_each],
        )

    def replay(self, servers: Servers) -> list[float]:
        """Send all to fresh servers. Returns the CPU seconds that each needs for what was measured."""
        for master in servers.masters:
            for name in script_texts.script_names():
                master.client.script_load(script_texts.source_for_many(name))
        _send_to_each(servers, self.warm_up)
        before_s = [master.cpu_s() for master in servers.masters]
        _send_to_each(servers, self.measured)
        return [master.cpu_s() - spent_s for master, spent_s in zip(servers.masters, before_s, strict=True)]


def _read(path: Path) -> Iterable[Part]:
    data, at = path.read_bytes(), 0
    while at + _HEAD.size <= len(data):
        at_s, port, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + size <= len(data):  # the node was killed as it wrote the last one
            yield Part(at_s, port, data[at : at + size])
        at += size


def _send_to_each(servers: Servers, parts: list[list[bytes]]) -> None:
    with ThreadPoolExecutor(len(parts)) as threads:
        list(threads.map(_send, servers.masters, parts))


def _send(master: Master, parts: list[bytes]) -> None:
    """Send all parts, and wait until the last one is answered."""
    with _connected(master.address) as connection:
        connection.settimeout(SILENT_S_MAX)
        listening = threading.Thread(target=_listen, args=(connection,))
        listening.start()
        for part in parts:
            connection.sendall(part)
        connection.sendall(_packed(("ECHO", _MARK)))
        listening.join()


def _connected(address: str | int) -> socket.socket:
    if isinstance(address, int):
        return socket.create_connection(("127.0.0.1", address))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def _listen(connection: socket.socket) -> None:
    """Read all replies, up to that of the mark."""
    tail = b""
    while not tail.endswith(_MARK + b"\r\n"):
        told = connection.recv(1 << 20)
        if not told:
            raise ConnectionError("the server has closed the connection")
        tail = (tail + told)[-64:]
