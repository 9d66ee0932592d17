"""Copies the HTTP message of one record out of a WARC file, in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.members import member_ends
from bigcrawl.warc.record_heads import HEAD_BYTES_MAX, head_fields

if TYPE_CHECKING:
    from pathlib import Path

_HEAD_END = b"\r\n\r\n"


class Extracted(NamedTuple):
    """One record.

    Attributes:
        fields: of its head; names in lower case.
        http_head: of its HTTP message, with its last line end; empty if the block is none.
        body_bytes: of the payload.
    """

    fields: dict[bytes, bytes]
    http_head: bytes
    body_bytes: int


def extract(path: Path, offset: int, body: BinaryIO) -> Extracted:
    """Write the payload of the record at an offset into `body`, as stored; what precedes a failure is written.

    Raises:
        CorruptionError: there is no whole record at that offset.
        OSError: the file cannot be read, or `body` not be written.
    """
    record = _Record(body)
    with path.open("rb") as file:
        file.seek(offset)
        try:
            next(member_ends(file, lambda: record))
        except (EOFError, StopIteration):
            raise CorruptionError(path, offset, "a whole record", "the end of the file") from None
        except ValueError as error:
            raise CorruptionError(path, offset, "a record", str(error)) from error
    return Extracted(record.fields, record.http_head, record.body_bytes)


class _Record:
    """Divides the unpacked bytes of a record: its head, an HTTP head, the payload."""

    def __init__(self, body: BinaryIO) -> None:
        self._body = body
        self._begun: bytes | None = b""  # heads that are not whole yet
        self._missing = 0
        self.fields: dict[bytes, bytes] = {}
        self.http_head = b""
        self.body_bytes = 0

    def feed(self, piece: bytes) -> None:
        if self._begun is not None:
            self._begun += piece
            if len(self._begun) > len(piece) + HEAD_BYTES_MAX:
                raise ValueError("no end of its head")
            if not self._take_heads():
                return
            piece, self._begun = self._begun, None
        piece = piece[: self._missing]
        self._missing -= len(piece)
        self.body_bytes += len(piece)
        self._body.write(piece)

    def end(self) -> None:
        if self._begun is not None or self._missing:
            raise ValueError("it ends early")

    def _take_heads(self) -> bool:
        """Cut the heads off what has begun, if they are whole."""
        assert self._begun is not None
        head, end, rest = self._begun.partition(_HEAD_END)
        if not end:
            return False
        fields = head_fields(head)
        length = fields.get(b"content-length", b"")
        if not head.startswith(b"WARC/") or not length.isdigit():
            raise ValueError(f"begins with {head[:16]!r}")
        http_head = b""
        if fields.get(b"content-type", b"").startswith(b"application/http"):
            http_head, end, rest = rest.partition(_HEAD_END)
            if not end:
                return False
            http_head += b"\r\n"
        self.fields, self.http_head, self._begun = fields, http_head, rest
        self._missing = int(length) - (len(http_head) + 2 if http_head else 0)
        return True
