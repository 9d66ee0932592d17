"""Reads an answer that libcurl refuses, as browsers do: odd status lines, header lines, lengths and codings.

Head: up to four bytes of junk, and line ends, may precede the status line; a missing status is 200. NUL and CR within a
line become blanks; a line without a proper name is skipped. Body: by chunks if they are named, else by a length that is
one number, else until the connection ends. Transfer codings other than chunks become content codings. An answer without
a head is HTTP/0.9 if it begins with a tag. `ResponseBuilder` keeps the limits.

Sources: RFC 9112 sections 2.2, 4, 5, 6.3 and 7; Fetch, "extract a length"; Chromium's HttpUtil, HttpResponseHeaders.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scrapy.exceptions import DownloadFailedError

from bigcrawl.downloads.response_parts import length_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.downloads.response_builder import ResponseBuilder

_SLOP: Final = 4  # bytes of junk before the status line
_START_BYTES: Final = 16  # enough to recognise the start
_LINE_BYTES_MAX: Final = 64 << 10
_BODILESS: Final = frozenset({101, 204, 304})
CODINGS: Final = frozenset({b"gzip", b"x-gzip", b"deflate", b"br", b"zstd"})

_find_start = re.compile(rb"http|icy ", re.IGNORECASE).search
_parse_status_line = re.compile(rb"(?i:http|icy)(?:/(\d++)(?:\.(\d++))?+)?+\s*+(\d{3}(?!\d))?+(.*+)", re.DOTALL).match
_has_name = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++[ \t]*+:").match
_parse_chunk_size = re.compile(rb"[ \t]*+(?=[0-9A-Fa-f])0*+([0-9A-Fa-f]{0,15})[ \t]*+(?:;.*+)?+", re.DOTALL).fullmatch


def find_status(head: bytes) -> int | None:
    """Return the status in a head, 200 without one; None if it is no head."""
    start = _find_start(head, 0, _SLOP + _START_BYTES)
    found = _parse_status_line(head, start.start()) if start is not None and start.start() <= _SLOP else None
    return int(found[3] or b"200") if found is not None else None


class OddAnswer:
    def __init__(self, builder: ResponseBuilder) -> None:
        self.is_over = False
        self.loss = ""  # why the body is incomplete, or wrong
        self._builder = builder
        self._data = bytearray()
        self._looked = 0
        self._slop = 0
        self._left = 0
        self._pending = b""
        self._step: Callable[[], bool] = self._parse_status_line

    def feed(self, data: bytes) -> bool:
        """Parse the bytes that arrived; return whether the answer is complete. Raises DownloadFailedError."""
        self._data += data
        while not self.is_over and self._step():
            pass
        return self.is_over

    def end_of_connection(self) -> None:
        """Handle the end of the connection; raise DownloadFailedError if no head has arrived."""
        if not self._builder.is_head_whole:
            raise DownloadFailedError(f"{self._builder.request.url}: the connection was closed before an answer")
        # A body is whole if its last chunk has come (RFC 9112, section 8).
        if not self.is_over and self._step not in (self._take_rest, self._take_trailer) and not self._is_last_chunk():
            self.loss = self.loss or "the connection ended before the body"
        self.is_over = True

    def _is_last_chunk(self) -> bool:
        return self._step == self._take_chunk_size and bytes(self._data).strip(b"\r\n \t") in (b"0", b"00", b"000")

    def _parse_status_line(self) -> bool:
        data = self._data
        ends = len(data) - len(data.lstrip(b"\r\n"))
        del data[:ends]
        self._slop += ends
        if self._slop > _LINE_BYTES_MAX:
            raise DownloadFailedError(f"{self._builder.request.url} answers with empty lines")
        if len(data) < _START_BYTES and b"\n" not in data:
            return False
        start = _find_start(data, 0, _SLOP + _START_BYTES)
        if start is not None and start.start() <= _SLOP:
            del data[: start.start()]
            self._step = self._take_status
        elif data[:1] == b"<":
            self._pass_header(b"HTTP/0.9 200")
            self._pass_header(b"")
            self._step = self._take_rest
        else:
            raise DownloadFailedError(f"{self._builder.request.url} does not answer with HTTP: {bytes(data[:20])!r}")
        return True

    def _take_status(self) -> bool:
        line = self._next_line()
        if line is None:
            return False
        found = _parse_status_line(line)
        assert found is not None, "a status line begins so"
        major, minor, status, reason = found.groups()
        version = b"1.1" if (int((major or b"1")[:4]), int((minor or b"0")[:4])) >= (1, 1) else b"1.0"
        if status is None and reason[:1].isdigit():
            raise DownloadFailedError(f"{self._builder.request.url} answers with an invalid status: {line[:40]!r}")
        self._pass_header(b"HTTP/%b %b %b" % (version, status or b"200", reason.strip()))
        self._step = self._take_header
        return True

    def _take_header(self) -> bool:
        line = self._next_line()
        if line is None:
            return False
        if line[:1] in (b" ", b"\t"):
            self._pending += b" " + line.strip() if self._pending else b""
            self._pass_over(line)
            return True
        if self._pending:
            self._pass_header(self._pending)
        self._pending = line if _has_name(line) else b""
        if line and not self._pending:
            self._pass_over(line)
        if not line:
            self._pass_header(b"")
            self._step = self._choose_framing if self._builder.is_head_whole else self._parse_status_line
        return True

    def _choose_framing(self) -> bool:
        headers = self._builder.headers
        written = b",".join(headers.get(b"Transfer-Encoding", ())).lower().split(b",")
        codings = [word.partition(b";")[0].strip() for word in written]
        undone = [coding for coding in codings if coding in CODINGS]
        if undone:
            headers.setdefault(b"Content-Encoding", []).extend(undone)
        length = None if undone else length_in(headers.get(b"Content-Length", ()))
        if self._builder.status in _BODILESS or (length == 0 and b"chunked" not in codings):
            self.is_over = True
        elif b"chunked" in codings:
            self._step = self._take_chunk_size
        elif length is None:
            self._step = self._take_rest
        else:
            self._left = length
            self._step = self._take_body
        return True

    def _take_rest(self) -> bool:
        self._left = len(self._data)
        self._pass_body()
        return False

    def _take_body(self) -> bool:
        self._pass_body()
        self.is_over = self.is_over or not self._left
        return False

    def _take_chunk_size(self) -> bool:
        line = self._next_line()
        if line is None:
            return False
        found = _parse_chunk_size(line)
        if found is None:
            return self._record_loss(f"a chunk has no size: {line[:20]!r}")
        self._left = int(found[1] or b"0", 16)
        self._step = self._take_chunk if self._left else self._take_trailer
        return True

    def _take_chunk(self) -> bool:
        self._pass_body()
        if self._left:
            return False
        self._step = self._end_chunk
        return True

    def _end_chunk(self) -> bool:
        line = self._next_line()
        if line is None:
            return len(self._data) > 1 and self._record_loss("a chunk is longer than its size")
        if line.strip():
            return self._record_loss("a chunk is longer than its size")
        self._step = self._take_chunk_size
        return True

    def _take_trailer(self) -> bool:
        line = self._next_line()
        if line is None:
            return False
        self._pass_header(line)
        self.is_over = self.is_over or not line
        return True

    def _record_loss(self, loss: str) -> bool:
        self.loss, self.is_over = loss, True
        return False

    def _next_line(self) -> bytes | None:
        """Return the next line without its end, with NUL and CR as blanks; None if it has not arrived completely."""
        end = self._data.find(b"\n", self._looked)
        self._looked = len(self._data)
        if end < 0 and len(self._data) <= _LINE_BYTES_MAX:
            return None
        line = bytes(self._data[: end if end >= 0 else None]).rstrip(b"\r")
        del self._data[: end + 1 if end >= 0 else None]
        self._looked = 0
        return line.replace(b"\0", b" ").replace(b"\r", b" ")

    def _pass_over(self, line: bytes) -> None:
        self._pass_header(b"-" + line.replace(b":", b" "))

    def _pass_header(self, line: bytes) -> None:
        if self._builder.header(line + b"\r\n") is not None:
            self.is_over = True

    def _pass_body(self) -> None:
        piece = bytes(self._data[: self._left])
        del self._data[: self._left]
        self._looked = 0
        self._left -= len(piece)
        if piece and self._builder.body(piece) is not None:
            self.is_over = True
