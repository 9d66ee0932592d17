"""The part of HTTP/1.1 that a server of GET and HEAD needs. No I/O."""

from __future__ import annotations

import re
from collections import deque
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.line_file import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Printable ASCII without the blank, so that the access log can store it unchanged.
_TARGET: Final = re.compile(rb"[!-~]+")
# A name or an address of either kind, and a port.
_AUTHORITY: Final = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?")
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_CONDITIONS: Final = {b"if-none-match": "If-None-Match", b"if-modified-since": "If-Modified-Since"}
_HTTP_PORT: Final = 80
_HTTPS_PORT: Final = 443
# A crawler's requests to a host usually differ only in their first line, so parsed fields are cached.
_FIELDS_KEPT: Final = 4096


class BadRequestError(ValueError):
    def __init__(self, status: int) -> None:
        super().__init__(f"{status} {reason_of(status)}")
        self.status = status


class RequestHead(NamedTuple):
    """The head of a request.

    Attributes:
        target: in origin form; of CONNECT, as sent.
        is_old: HTTP/1.0, without chunks.
        host: lower-case, without port and final dot; "" if none is named.
        proxy_port: the port in a target in absolute form, 80 by default, or of CONNECT, 443; 0 in origin form.
        conditions: the values of If-None-Match and If-Modified-Since.
    """

    method: str
    target: str
    keep_alive: bool
    body_bytes: int
    is_old: bool
    host: str
    proxy_port: int
    conditions: Mapping[str, str]


class _HeaderFields(NamedTuple):
    host: str | None
    wishes: bytes
    body_bytes: int
    conditions: Mapping[str, str]


def reason_of(status: int) -> str:
    return _REASONS.get(status, "Unknown")


def parse_head(head: bytes) -> RequestHead:
    """Parse a request's head, given without the empty line that ends it; raise BadRequestError."""
    request_line, _, lines = head.partition(b"\r\n")
    words = request_line.split(b" ")
    if len(words) != 3 or not _TARGET.fullmatch(words[1]) or not words[0].isalpha():
        raise BadRequestError(400)
    method, target, version = words
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadRequestError(505)
    host, wishes, body_bytes, conditions = _read_fields(lines)
    is_old = version == b"HTTP/1.0"
    if host is None and not is_old:
        raise BadRequestError(400)
    keep_alive = b"keep-alive" in wishes if is_old else b"close" not in wishes
    proxy_port = 0
    path = target.decode()
    if method == b"CONNECT":
        host, port = _parse_authority(path)
        proxy_port = port or _HTTPS_PORT
    elif not path.startswith("/") and path != "*":
        host, proxy_port, path = _absolute_form(path)
    return RequestHead(method.decode(), path, keep_alive, body_bytes, is_old, host or "", proxy_port, conditions)


@lru_cache(_FIELDS_KEPT)
def _read_fields(lines: bytes) -> _HeaderFields:
    fields = {}
    for line in lines.split(b"\r\n") if lines else ():
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise BadRequestError(400)
        fields[name.lower()] = value.strip()
    if b"transfer-encoding" in fields:
        raise BadRequestError(501)
    body_bytes = fields.get(b"content-length", b"0")
    if not body_bytes.isdigit():
        raise BadRequestError(400)
    return _HeaderFields(
        host=_named_host(fields.get(b"host")),
        wishes=fields.get(b"connection", b"").lower(),
        body_bytes=int(body_bytes),
        conditions={name: fields[key].decode("latin-1") for key, name in _CONDITIONS.items() if key in fields},
    )


def _named_host(value: bytes | None) -> str | None:
    """Return the host in a Host header; "" if the header is empty, which is allowed; None if it is missing."""
    return _parse_authority(value.decode("latin-1"))[0] if value else None if value is None else ""


def _absolute_form(target: str) -> tuple[str, int, str]:
    scheme, colon, rest = target.partition("://")
    if not colon:
        raise BadRequestError(400)
    if scheme.lower() != "http":
        raise BadRequestError(421)
    split = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    host, port = _parse_authority(rest[:split])
    path = rest[split:]
    return host, port or _HTTP_PORT, path if path.startswith("/") else "/" + path


def _parse_authority(text: str) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise BadRequestError(400)
    return match[1].lower().removesuffix("."), int(match[2] or 0)


def encode_head(version: str, status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return f"{version} {status} {reason_of(status)}\r\n{lines}\r\n".encode("latin-1")


_SECONDS: Final = re.compile("[0-9]{1,9}")


def retry_after_ms(value: str, at_ms: int) -> int:
    """Return the delay of a Retry-After value received at `at_ms`; 0 for past dates and malformed values."""
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return int(value) * 1000
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0
    return max(0, round(until.timestamp() * 1000) - at_ms)


_HEAD_BYTES_MAX: Final = 16_384
# Bound on requests that are read ahead before earlier answers.
_WAITING_MAX: Final = 16


class ArrivedRequest(NamedTuple):
    """A request, and when its head was complete. A `head` of None is answered with the status `refusal`."""

    start_ms: int
    head: RequestHead | None
    refusal: int


class RequestParser:
    """Turns bytes into requests, in order, without their bodies.

    After an invalid request no more is read, because the start of the next one is unknown.
    """

    __slots__ = ("_arrived_ms", "_buffer", "_is_deaf", "_skip_bytes", "_waiting")

    def __init__(self) -> None:
        self._buffer = b""
        self._skip_bytes = 0
        self._is_deaf = False
        self._arrived_ms = 0
        self._waiting: deque[ArrivedRequest] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def wants_more(self) -> bool:
        """Return whether to continue reading, even input that is ignored, in order to notice the client's end."""
        return self._is_deaf or len(self._waiting) < _WAITING_MAX

    def feed(self, data: bytes, late_ms: int = 0) -> None:
        self._arrived_ms = now_ms() - late_ms
        if not self._is_deaf:
            self._buffer += data
            self._parse_buffer()

    def pop(self) -> ArrivedRequest:
        arrived = self._waiting.popleft()
        if self._buffer:
            self._arrived_ms = now_ms()
            self._parse_buffer()
        return arrived

    def stop(self) -> None:
        self._is_deaf = True
        self._buffer = b""

    def _parse_buffer(self) -> None:
        while len(self._waiting) < _WAITING_MAX and not self._is_deaf:
            if self._skip_bytes:
                skipped = min(self._skip_bytes, len(self._buffer))
                self._buffer = self._buffer[skipped:]
                self._skip_bytes -= skipped
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if len(head) > _HEAD_BYTES_MAX:
                self._queue_refusal(431)
            elif end:
                self._buffer = rest
                self._take_head(head)
            else:
                break

    def _take_head(self, data: bytes) -> None:
        try:
            head = parse_head(data)
        except BadRequestError as error:
            self._queue_refusal(error.status)
            return
        self._skip_bytes = head.body_bytes
        self._waiting.append(ArrivedRequest(self._arrived_ms, head, 0))

    def _queue_refusal(self, status: int) -> None:
        self.stop()
        self._waiting.append(ArrivedRequest(self._arrived_ms, None, status))
