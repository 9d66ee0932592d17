"""An answer of a host in the simulated web, including its faults, which the server carries out."""

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
    """A fault that happens while an answer is sent."""

    NONE = "none"
    RESET = "reset"  # the connection is reset before any byte: a host that is down
    SILENT = "silent"  # nothing is sent, and the connection stays open
    STALLED = "stalled"  # nothing comes after `fault_at` bytes of the body, and the connection stays open
    CUT = "cut"  # the connection closes after `fault_at` bytes of the body
    ENDLESS = "endless"  # the body is repeated forever


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to one request.

    Attributes:
        status: 100 to 599.
        headers: name and value in order, without those that the server adds: Date, Server, Connection and what
            `framing` requires. If Content-Encoding is given here, `body` must be encoded accordingly.
        body: the entity as sent, before chunking.
        delay_ms: time between the request and the first byte.
        bytes_per_s: how fast the body is sent, in a few pieces a second; 0: at once.
        announced_bytes: the Content-Length header; None: the true length. If it is larger, the client waits for bytes
            that never come, until the server closes the connection; if smaller, bytes are left over.
        fault_at: bytes of the body before `fault` happens.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay_ms: int = 0
    bytes_per_s: int = 0
    framing: Framing = Framing.LENGTH
    announced_bytes: int | None = None
    fault: Fault = Fault.NONE
    fault_at: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether a client can receive all of it, and know that it has."""
        length = len(self.body) if self.announced_bytes is None else self.announced_bytes
        return self.fault is Fault.NONE and length <= len(self.body)
