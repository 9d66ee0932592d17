"""Receives one answer and builds Scrapy's response: limits, signals, data loss.

libcurl calls `header` with each header line and `body` with each piece of the body. An exception must not pass through
C code, so both store it in `error` and abort the transfer.
"""

from __future__ import annotations

import logging
from io import BytesIO
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

import pycurl
from scrapy import signals
from scrapy.exceptions import DownloadCancelledError, DownloadFailedError, IgnoreRequest, StopDownload
from scrapy.http import Headers
from twisted.python.failure import Failure

from bigcrawl.downloads.response_parts import length_in, parse_address, response_class, title_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.http import Response

    from bigcrawl.downloads.signalling import SignalSender

logger = logging.getLogger(__name__)

_HOP_BY_HOP: Final = frozenset(
    {b"Connection", b"Keep-Alive", b"Proxy-Connection", b"Te", b"Trailers", b"Transfer-Encoding", b"Upgrade"}
)
_STATUS_LINES: Final = (b"HTTP/", b"http/", b"Http/")
_BODYLESS: Final = frozenset({204, 304})
PIECE_BYTES: Final = 64  # smaller pieces cost more than their bytes do: each takes up to 4 us
SMALL_PIECES_MAX: Final = 1 << 16
BREAK_OFF: Final = 0  # a callback that consumes 0 bytes aborts its transfer
_SWITCHING = 101
# Flags of truncated responses; the WARC pipeline knows them.
TRUNCATED: Final = "truncated"
TRUNCATED_BY_TIME: Final = "truncated-time"
_SEND: Final[int] = pycurl.PREREQFUNC_OK
_DO_NOT_SEND: Final[int] = pycurl.PREREQFUNC_ABORT


class HeadRefusedError(DownloadCancelledError, IgnoreRequest):
    """An answer's headers exceed a limit. Logged in one line, where Scrapy would log a traceback."""


class AnswerLimits(NamedTuple):
    """Limits on one answer: bytes of body (0: none) and of headers, and the number of header lines."""

    body_max: int
    body_warns: int
    head_max: int
    headers_max: int


class FetchWatcher(Protocol):
    """The frontier, which decides which requests may be sent, and follows their progress."""

    def may_send(self, request: Request) -> bool:
        pass

    def record_connected(self, request: Request, took_ms: int) -> None:
        """Record that a new connection for a request has opened, after `took_ms`."""

    def record_response_head(self, request: Request) -> None:
        """Record that the head of the answer has come."""


class ResponseBuilder:
    __slots__ = (
        "_header_bytes_left", "_headers_left", "_is_heard", "_is_stale", "_last", "_length", "_maxsize", "_may_repeat",
        "_piece_bytes_left", "_received", "_sent", "_signalling", "_size", "_started", "_truncates", "_warnsize",
        "_watch", "error", "flags", "headers", "is_head_whole", "is_late", "is_lost", "is_stale", "limit", "own_port",
        "peer", "protocol", "request", "status", "stopped",
    )  # fmt: skip

    def __init__(
        self,
        request: Request,
        signalling: SignalSender,
        bounds: AnswerLimits,
        *,
        may_repeat: bool = True,
        is_stale: Callable[[str, int], bool | None] | None = None,
        watch: FetchWatcher | None = None,
        truncates: bool = False,
    ) -> None:
        self.request = request
        self.status = 0
        self.protocol = "HTTP/1.1"
        self.headers: dict[bytes, list[bytes]] = {}
        self.is_head_whole = False
        self.is_lost = False  # the connection was lost before any answer
        self.is_stale = False  # bytes had come over the connection before the request
        self.is_late = False  # the request must no longer be sent
        self.error: Exception | None = None
        self.stopped: StopDownload | None = None
        self.flags: list[str] = []
        self.limit = ""  # the limit that ended the transfer, as named in `bigcrawl.stats`
        self._signalling = signalling
        self._maxsize, self._warnsize = bounds.body_max, bounds.body_warns
        self._header_bytes_left, self._headers_left = bounds.head_max, bounds.headers_max
        self._may_repeat = may_repeat
        self._is_stale = is_stale
        self._watch = watch
        self._truncates = truncates
        self._is_heard = signalling.is_heard(signals.bytes_received)
        self._sent = False
        self.peer = ""  # address that the request was sent to
        self.own_port = 0  # and from which port
        self._started = self._last = monotonic()
        self._received = BytesIO()
        self._size = 0
        self._length: int | None = None
        self._piece_bytes_left = SMALL_PIECES_MAX * PIECE_BYTES

    def sending(self, peer: str = "", _own: str = "", _port: int = 0, own_port: int = 0) -> int:
        """Decide, once the connection is open, whether the request may be sent.

        It may not if opening took so long that the frontier no longer permits it; or if something has come over a kept
        connection, which would count as the answer; or if it was sent before, over a reused connection that turned out
        to be
        dead: the server may have received it, and the host's delay would be broken.
        """
        self.peer, self.own_port = peer, own_port
        is_stale = self._is_stale(peer, own_port) if self._is_stale is not None else False
        self.is_stale = bool(is_stale)
        if self.is_stale:
            return _DO_NOT_SEND
        if is_stale is None and self._watch is not None:
            self._watch.record_connected(self.request, round(1000 * (monotonic() - self._started)))
        self.is_late = self._watch is not None and not self._watch.may_send(self.request)
        self.is_lost = self._sent and not self._may_repeat
        self._sent = True
        return _DO_NOT_SEND if self.is_lost or self.is_late else _SEND

    def begin(self) -> None:
        self.is_stale = False

    def may_send(self, peer: str) -> bool:
        return self.sending(peer) == _SEND

    def header(self, line: bytes) -> int | None:
        try:
            self._header_bytes_left -= len(line)
            self._headers_left -= 1
            if self._header_bytes_left < 0 or self._headers_left < 0:
                self._refuse_head()
            if self.is_head_whole:
                return None  # trailers of a chunked body
            line = line.rstrip(b"\r\n")
            if line.startswith(_STATUS_LINES):
                self._begin_head(line)
            elif line:
                name, colon, value = line.partition(b":")
                if colon:
                    self.headers.setdefault(title_case(name.strip()), []).append(value.strip(b" \t"))
            elif self.status >= 200 or self.status == _SWITCHING:
                return self._end_head()
        except Exception as error:  # noqa: BLE001 - it is raised again where it can be
            self.error = error
            return BREAK_OFF
        return None

    def body(self, chunk: bytes) -> int | None:
        try:
            if self._truncates and self._size + len(chunk) > self._maxsize > 0:
                return self._take_last(chunk[: self._maxsize - self._size], "size")
            self._received.write(chunk)
            self._size += len(chunk)
            self._last = monotonic()
            self._piece_bytes_left += len(chunk) - PIECE_BYTES
            if self._is_heard and self._ask_receivers(signals.bytes_received, data=chunk):
                return BREAK_OFF
            if self._size > self._maxsize > 0 or self._size > self._warnsize > 0:
                self._check_size("Received", self._size)
            if self._piece_bytes_left < 0:
                return self._end_pieces()
        except Exception as error:  # noqa: BLE001 - it is raised again where it can be
            self.error = error
            return BREAK_OFF
        return None

    def cut_off(self) -> bool:
        """Truncate the answer because its time is up; return whether truncating is allowed and leaves a body."""
        self._meet_limit("time")
        if not (self._truncates and self._size):
            return False
        self.flags.append(TRUNCATED_BY_TIME)
        return True

    def mark_incomplete(self) -> None:
        """Flag the response as incomplete, and keep what came of its body."""
        self._meet_limit("dataloss")
        self.flags.append("dataloss")

    def is_chunked(self) -> bool:
        return self.is_head_whole and b"chunked" in b",".join(self.headers.get(b"Transfer-Encoding", ())).lower()

    def is_unpackable(self) -> bool:
        from bigcrawl.downloads.packing import is_whole  # few answers are incomplete

        return self.is_head_whole and is_whole(self.headers.get(b"Content-Encoding", ()), self._received.getvalue())

    def has_fallen_silent(self) -> bool:
        """Return whether a body without a length came, then nothing for as long: its server just does not close."""
        return (
            self.is_head_whole
            and self._size > 0
            and self._ends_with_connection()
            and 2 * self._last <= self._started + monotonic()
        )

    @property
    def is_truncated(self) -> bool:
        return TRUNCATED in self.flags

    def response(self, peer: str, certificate: Any) -> Response:
        """Raises StopDownload if a signal receiver stopped the download and wants it to fail."""
        headers = self._shown_headers()
        body = self._received.getvalue()
        url = self.request.url.partition("#")[0]
        kind = response_class(headers, url, body)
        if not self.limit and self._ends_with_connection():
            self.flags.append("partial")
        if self.stopped is not None:
            self.flags.append("download_stopped")
        response: Response = kind(
            url=url,
            status=self.status,
            body=body,
            flags=self.flags,
            certificate=certificate,
            ip_address=parse_address(peer) if peer else None,
            protocol=self.protocol,
        )
        response.headers = headers  # the constructor would copy them one by one
        if self.stopped is not None and self.stopped.fail:
            self.stopped.response = response
            raise self.stopped
        return response

    def _shown_headers(self) -> Headers:
        """Return the answer's headers without those about the connection, and with at most one, correct, length."""
        shown = {name: values for name, values in self.headers.items() if name not in _HOP_BY_HOP}
        if b"Transfer-Encoding" in self.headers:
            shown.pop(b"Content-Length", None)
        elif b"Content-Length" in shown:
            shown[b"Content-Length"] = shown[b"Content-Length"][-1:]
        headers = Headers()
        dict.update(headers, shown)
        return headers

    def _meet_limit(self, reason: str) -> None:
        self.limit = reason

    def _refuse_head(self) -> NoReturn:
        """Refuse an answer by the limits on all header lines, trailers included: none can be endless."""
        if self._header_bytes_left < 0:
            self._meet_limit("header-bytes")
            message = f"{self.request.url} has more bytes of headers than BIGCRAWL_HEADER_BYTES_MAX"
        else:
            self._meet_limit("headers")
            message = f"{self.request.url} has more lines of headers than BIGCRAWL_HEADERS_MAX"
        logger.warning("%(message)s", {"message": message})
        raise HeadRefusedError(message)

    def _begin_head(self, line: bytes) -> None:
        version, _, rest = line.replace(b"\t", b" ").partition(b" ")
        self.protocol = version.upper().decode("latin-1")
        self.status = self._status_in(rest)
        self.headers = {}

    def _status_in(self, rest: bytes) -> int:
        written = rest.lstrip(b" ")[:4]
        if not written[:3].isdigit() or len(written) < 3 or written[3:].isdigit() or written < b"100":
            raise DownloadFailedError(f"{self.request.url} answers with an invalid status: {rest[:20]!r}")
        return int(written[:3])

    def _end_head(self) -> int | None:
        self.is_head_whole = True
        self.request.meta["download_latency"] = monotonic() - self._started
        if self._watch is not None:
            self._watch.record_response_head(self.request)
        self._length = length_in(self.headers.get(b"Content-Length", ()))
        expected = None if b"Transfer-Encoding" in self.headers else self._length
        if self._signalling.is_heard(signals.headers_received):
            headers = self._shown_headers()
            if self._ask_receivers(signals.headers_received, headers=headers, body_length=expected):
                return BREAK_OFF
        if expected:
            self._check_size("Expected to receive", expected)
        return None

    def _end_pieces(self) -> int:
        if self._truncates:
            return self._take_last(b"", "pieces")
        self._meet_limit("pieces")
        raise DownloadCancelledError(f"{self.request.url} sends its body in too many small pieces")

    def _take_last(self, chunk: bytes, limit: str) -> int:
        self._received.write(chunk)
        self._size += len(chunk)
        self._meet_limit(limit)
        self.flags.append(TRUNCATED)
        if chunk and self._is_heard:
            self._ask_receivers(signals.bytes_received, data=chunk)
        return BREAK_OFF

    def _check_size(self, verb: str, size: int) -> None:
        if size > self._maxsize > 0 and not self._truncates:
            self._meet_limit("size")
            self._received = BytesIO()
            message = _too_large(verb, size, "max", self._maxsize, self.request)
            logger.warning("%(message)s", {"message": message})
            raise DownloadCancelledError(message)
        if size > self._warnsize > 0:
            message = _too_large(verb, size, "warn", self._warnsize, self.request)
            logger.warning("%(message)s", {"message": message})
            self._warnsize = 0

    def _ask_receivers(self, signal: object, **fields: Any) -> bool:
        for receiver, result in self._signalling.send(
            signal, request=self.request, spider=self._signalling.spider, **fields
        ):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                by = getattr(receiver, "__qualname__", receiver)
                words = {"request": self.request, "by": by}
                logger.debug("Download stopped for %(request)s from signal handler %(by)s", words)
                self.stopped = result.value
                return True
        return False

    def _ends_with_connection(self) -> bool:
        """Return whether the body ends with the connection, so that its completeness is unknown."""
        codings = self.headers.get(b"Transfer-Encoding")
        framed = self._length is not None
        if codings is not None:
            framed = framed or b"chunked" in b",".join(codings).lower()
        return not framed and self.status not in _BODYLESS and self.stopped is None and self.protocol < "HTTP/2"


def _too_large(verb: str, size: int, what: str, limit: int, request: Request) -> str:
    return f"{verb} {size} bytes which is larger than download {what} size ({limit}) in request {request}."
