"""A web of given answers, and a client that sees bytes and how a connection ends."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl_simweb.basics.answer import Answer
    from bigcrawl_simweb.basics.name_record import NameFault

A, B = "127.16.0.1", "127.16.0.2"
TIMEOUT_S = 120  # far more than anything takes: a test that hangs shall say where


class Asked(NamedTuple):
    """A request as the web saw it."""

    host: str
    target: str
    port: int
    at_ms: int
    conditions: Mapping[str, str]


@dataclass
class ScriptedWeb:
    """Answers by target, the same on both of its hosts; a target without one is a bug of the web's."""

    answers: Mapping[str, Answer]
    names: Mapping[str, str | NameFault] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def addresses(self) -> list[str]:
        return [A, B]

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] | None = None
    ) -> Answer:
        self.asked.append(Asked(host, target, port, at_ms, conditions or {}))
        return self.answers[target]

    def address_of(self, name: str) -> str | NameFault | None:
        return self.names.get(name)


class Heard(NamedTuple):
    """What a client got: the head, what came after it, and whether the connection was reset."""

    head: str
    body: bytes
    is_reset: bool


def request(target: str, method: str = "GET", version: str = "1.1", **headers: str) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in {"Host": A, **headers}.items()]
    return f"{method} {target} HTTP/{version}\r\n{''.join(lines)}\r\n".encode()


def connected(port: int, address: str = A) -> socket.socket:
    return socket.create_connection((address, port), timeout=TIMEOUT_S)


def heard_until_end(sock: socket.socket) -> Heard:
    """Read until the server ends the connection."""
    parts, is_reset = [], False
    try:
        while part := sock.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        is_reset = True
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    return Heard(head.decode(), body, is_reset)


def hear(port: int, data: bytes) -> Heard:
    """Send, and read until the server ends the connection."""
    with connected(port) as sock:
        sock.sendall(data)
        return heard_until_end(sock)


def heard_bytes(sock: socket.socket, count: int) -> bytes:
    """Read exactly that many."""
    data = bytearray()
    while len(data) < count:
        part = sock.recv(count - len(data))
        assert part, f"the connection ended after {len(data)} bytes"
        data += part
    return bytes(data)


def heard_head(sock: socket.socket) -> str:
    """Read the head of an answer and nothing after it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += heard_bytes(sock, 1)
    return head.decode()
