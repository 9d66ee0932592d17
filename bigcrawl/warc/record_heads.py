from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.heads import HEAD_BYTES_MAX, NEXT_BYTES, is_next, length_of, record_head
from bigcrawl.warc.members import TORN, packing_of, spans_of_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD_END: Final = b"\r\n\r\n"


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class PayloadDigest:
    def __init__(self, digest: Digest, heads: int) -> None:
        self._digest = digest
        self._heads = heads
        self._last = b""  # may begin the end of a head

    def update(self, piece: bytes) -> None:
        while self._heads:
            head, end, piece = (self._last + piece).partition(HEAD_END)
            self._last = b"" if end else head[1 - len(HEAD_END) :]
            if not end:
                return
            self._heads -= 1
        self._digest.update(piece)

    def digest(self) -> bytes:
        return self._digest.digest()


_BODY_DIGEST_BYTES = 32


class RecordHead(NamedTuple):
    """The start of one record, and the place of its member; `body` is the BLAKE2b of the bytes after an HTTP head."""

    offset: int
    size: int
    fields: dict[bytes, bytes]
    block: bytes
    block_bytes: int
    body: bytes = b""


def record_heads(path: Path, *, has_bodies: bool = False) -> Iterator[RecordHead]:
    """Yield the head of each readable record, then raise CorruptionError if other bytes were found."""
    begun: list[_RecordBeginning] = []

    def sink() -> _RecordBeginning:
        begun[:] = [_RecordBeginning(has_bodies)]
        return begun[0]

    first, damaged, left_out = None, 0, 0
    packing = packing_of(path)
    with path.open("rb") as file:
        for begin, end, problem, is_whole in spans_of_file(file, sink, packing):
            record = begun[0] if is_whole and begun else None
            if record is not None and record.fields:
                yield RecordHead(begin, end - begin, record.fields, record.block, record.block_bytes, record.digest())
            elif problem:
                left_out += end - begin
            if problem:
                first = first or (begin, problem)
                damaged += 1
    if first is not None:
        expected, problem = (
            ("a whole record", "the end of the file") if first[1] == TORN else ("a WARC record", first[1])
        )
        places = f"; {damaged:,} such places, {left_out:,} bytes left out"
        raise CorruptionError(path, first[0], expected, problem + places)


class _RecordBeginning:
    def __init__(self, has_body: bool) -> None:
        self.fields: dict[bytes, bytes] = {}
        self.block = b""
        self._data = b""
        self._size = 0
        self._block_at = 0
        self._next_at = 1 << 62
        self._next = b""
        self._body = PayloadDigest(blake2b(digest_size=_BODY_DIGEST_BYTES), heads=2) if has_body else None

    def feed(self, piece: bytes) -> None:
        before, self._size = self._size, self._size + len(piece)
        if self._body is not None:
            self._body.update(piece)
        if before < HEAD_BYTES_MAX:
            self._data += piece[: HEAD_BYTES_MAX - len(self._data)]
            if not self.fields and (found := record_head(self._data)) is not None:
                self.fields, self._block_at = found
                told = length_of(self.fields)
                if told is not None:
                    self._next_at = self._block_at + told
                    self._next = (self._data if before else piece)[self._next_at :][:NEXT_BYTES]
                    return
        if self._next_at + len(self._next) < self._size and len(self._next) < NEXT_BYTES:
            self._next += piece[max(self._next_at + len(self._next) - before, 0) :][: NEXT_BYTES - len(self._next)]

    @property
    def block_bytes(self) -> int:
        """The Content-Length, or if that is wrong, the length of the block in the member."""
        there = self._size - self._block_at
        told = self._next_at - self._block_at
        if self._next == b"\n\r\n":  # the length includes half of a line end
            return told - 1
        if told <= there and (not self._next.strip(b"\r\n") or is_next(self._next)):
            return told
        return max(there - 4, 0)

    def digest(self) -> bytes:
        return b"" if self._body is None else self._body.digest()

    def end(self) -> str:
        self.block = self._data[self._block_at :]
        if not self.fields:
            return f"what begins with {self._data[:16]!r}"
        if self._next.strip(b"\r\n") and is_next(self._next):
            return "more than one: `warcio recompress OLD NEW` makes a file with a member for each"
        return ""
