"""Splits the incoming bytes of a connection into requests. No I/O."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from bigcrawl_simweb.basics.clock import now_ms
from bigcrawl_simweb.serve.http1 import BadRequestError, RequestHead, parse_head

_HEAD_BYTES_MAX: Final = 16_384
# Bound on requests that are read ahead before earlier answers.
_WAITING_MAX: Final = 16


class ArrivedRequest(NamedTuple):
    """A request, and when its head was complete. If `head` is None, the answer is the status `refusal`."""

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
        """Return whether to continue reading; true even when input is ignored, to notice the client's end."""
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
