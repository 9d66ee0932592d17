"""What a host of the simulated web answers, with everything that is wrong about it; the server carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Framing(Enum):
    """How a client learns where the body ends."""

    LENGTH = "length"  # Content-Length
    CHUNKED = "chunked"  # Transfer-Encoding: chunked
    CLOSE = "close"  # neither: the connection closes
    OLD = "old"  # HTTP/1.0, neither, and the connection closes


class Fault(Enum):
    """What happens to an answer on its way."""

    NONE = "none"
    RESET = "reset"  # no byte comes, the connection is reset: a host that is down
    SILENT = "silent"  # no byte comes, and nothing else
    STALLED = "stalled"  # nothing comes after `fault_at` bytes of the body, and the connection stays open
    CUT = "cut"  # the connection closes after `fault_at` bytes of the body
    ENDLESS = "endless"  # the body is sent again and again, for ever


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to one request.

    Attributes:
        status: 100 to 599.
        headers: name and value in order, without what the server adds: Date, Server, Connection and what
            `framing` asks for. Content-Encoding is written here, and `body` is encoded by it.
        body: the entity as it is sent, before chunking.
        delay_ms: what passes between the request and the first byte.
        bytes_per_s: how fast the body comes, in a few pieces a second; 0: at once.
        told_bytes: the Content-Length that is told; None: the true one. A larger one makes the client wait for
            what never comes, until the server closes the connection; a smaller one leaves bytes behind.
        fault_at: bytes of the body before `fault` happens.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay_ms: int = 0
    bytes_per_s: int = 0
    framing: Framing = Framing.LENGTH
    told_bytes: int | None = None
    fault: Fault = Fault.NONE
    fault_at: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether a client can receive all of it, and know that it has."""
        length = len(self.body) if self.told_bytes is None else self.told_bytes
        return self.fault is Fault.NONE and length <= len(self.body)
