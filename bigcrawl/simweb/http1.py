"""As much of HTTP/1.1 as a server of GET and HEAD needs: heads in, answers out. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

# Printable ASCII without the blank: the access log can hold such a target as it is.
_TARGET: Final = re.compile(rb"[!-~]+")
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class BadRequestError(ValueError):
    """The request cannot be understood; `status` says how."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} {_REASONS[status]}")
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What the first lines of a request say; `target` is in origin form, `body_bytes` follow the head."""

    method: str
    target: str
    keep_alive: bool
    body_bytes: int


def parse_head(head: bytes) -> RequestHead:
    """Read a request's head, given without the empty line that ends it.

    Raises:
        BadRequestError: it is malformed, or asks for what this server does not do.
    """
    request_line, *lines = head.split(b"\r\n")
    words = request_line.split(b" ")
    if len(words) != 3 or not _TARGET.fullmatch(words[1]) or not words[0].isalpha():
        raise BadRequestError(400)
    method, target, version = words
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadRequestError(505)
    fields = _fields(lines)
    if version == b"HTTP/1.1" and b"host" not in fields:
        raise BadRequestError(400)
    if b"transfer-encoding" in fields:
        raise BadRequestError(501)
    body_bytes = fields.get(b"content-length", b"0")
    if not body_bytes.isdigit():
        raise BadRequestError(400)
    wishes = fields.get(b"connection", b"").lower()
    keep_alive = b"close" not in wishes if version == b"HTTP/1.1" else b"keep-alive" in wishes
    return RequestHead(method.decode(), _origin_form(target.decode()), keep_alive, int(body_bytes))


def encode_answer(
    status: int,
    headers: tuple[tuple[str, str], ...],
    body: bytes,
    *,
    head_only: bool,
    keep_alive: bool,
    date: str,
) -> bytes:
    """The bytes of an answer; `head_only` answers HEAD: the length is told, the body is not sent."""
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}", f"Date: {date}", "Server: simweb"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Content-Length: {len(body)}")
    lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + (b"" if head_only else body)


def _fields(lines: list[bytes]) -> dict[bytes, bytes]:
    fields = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise BadRequestError(400)
        fields[name.lower()] = value.strip()
    return fields


def _origin_form(target: str) -> str:
    """Path and query of a target that a client wrote as it would to a proxy."""
    if not target.lower().startswith("http://"):
        return target
    slash = target.find("/", len("http://"))
    return "/" if slash < 0 else target[slash:]
