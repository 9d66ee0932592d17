"""A host's answer, with the faults that the server simulates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Framing(Enum):
    LENGTH = "length"  # Content-Length
    CHUNKED = "chunked"  # Transfer-Encoding: chunked
    CLOSE = "close"  # the connection closes
    OLD = "old"  # HTTP/1.0, and the connection closes


class Fault(Enum):
    NONE = "none"
    RESET = "reset"  # the connection is reset before any byte
    SILENT = "silent"  # nothing is sent, and the connection stays open
    STALLED = "stalled"  # the body stops after `fault_at` bytes, and the connection stays open
    CUT = "cut"  # the connection closes after `fault_at` bytes of the body
    ENDLESS = "endless"  # the body is repeated forever


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to one request.

    Attributes:
        headers: without Date, Server, Connection and the framing's, which the server adds.
        body: before chunking, but with the Content-Encoding in `headers`.
        bytes_per_s: speed of the body; 0 to send it at once.
        announced_bytes: the Content-Length; None for the true length. If larger, the connection closes too early.
        fault_at: bytes of the body before `fault`.
        has_own_head: Date and Server are in `headers`, or were never sent.
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
    has_own_head: bool = False

    @property
    def is_whole(self) -> bool:
        length = len(self.body) if self.announced_bytes is None else self.announced_bytes
        return self.fault is Fault.NONE and length <= len(self.body)
