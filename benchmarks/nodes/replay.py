"""What one core of Redis can serve: the commands of a measured crawl, sent again as fast as a server answers.

While the nodes run, Redis is mostly idle, and each batch finds its caches cold and the core asleep. Its CPU a page says
little about the pages that it could serve. So each node keeps what it sends, with the time, and all of it is sent again
in that order, over one connection that never waits for a reply.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Self

from benchmarks.crawl import procfs
from bigcrawl.redisdb import script_texts
from bigcrawl.redisdb.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bigcrawl.redisdb.scripts import Value
    from tests.support.redis_server import PrivateRedis

_HEAD: Final = struct.Struct("<dI")
_MARK: Final = b"replayed"
SILENT_S_MAX: Final = 60.0


class RecordingConnections(Connections):
    """Keeps what it sends."""

    record: BinaryIO

    async def talk(self, rows: Sequence[Sequence[Value]]) -> list[object]:
        packed = b"".join(map(_packed, rows))
        self.record.write(_HEAD.pack(time.monotonic(), len(packed)) + packed)
        return await super().talk(rows)


def _packed(row: Sequence[Value]) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in row]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Recorded(NamedTuple):
    """What the nodes sent, in its order: before the measurement, and during it."""

    warm_up: list[bytes]
    measured: list[bytes]

    @classmethod
    def read(cls, records: Iterable[Path], since_s: float, until_s: float) -> Self:
        """Read the nodes' records."""
        parts = sorted(part for path in records for part in _read(path))
        return cls(
            [data for at_s, data in parts if at_s < since_s],
            [data for at_s, data in parts if since_s <= at_s < until_s],
        )

    def replay(self, redis: PrivateRedis) -> float:
        """Send all to a fresh server. Returns the CPU seconds that it needs for what was measured."""
        for name in script_texts.names():
            redis.client.script_load(script_texts.source_for_many(name))
        _send(redis, self.warm_up)
        before_s = procfs.cpu_seconds(redis.pid)
        _send(redis, self.measured)
        return procfs.cpu_seconds(redis.pid) - before_s


def _read(path: Path) -> Iterable[tuple[float, bytes]]:
    data, at = path.read_bytes(), 0
    while at + _HEAD.size <= len(data):
        at_s, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + size <= len(data):  # the node was killed as it wrote the last one
            yield at_s, data[at : at + size]
        at += size


def _send(redis: PrivateRedis, parts: list[bytes]) -> None:
    """Send all parts, and wait until the last one is answered."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(redis.socket_path))
        connection.settimeout(SILENT_S_MAX)
        listening = threading.Thread(target=_listen, args=(connection,))
        listening.start()
        for part in parts:
            connection.sendall(part)
        connection.sendall(_packed(("ECHO", _MARK)))
        listening.join()


def _listen(connection: socket.socket) -> None:
    """Read all replies, up to that of the mark."""
    tail = b""
    while not tail.endswith(_MARK + b"\r\n"):
        told = connection.recv(1 << 20)
        if not told:
            raise ConnectionError("the server has closed the connection")
        tail = (tail + told)[-64:]
