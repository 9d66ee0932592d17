"""Reads the heads of a WARC file's records, one after another, without an index."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.members import member_ends
from bigcrawl.warc.payload_digest import PayloadDigest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEAD_END = b"\r\n\r\n"
_DIGITS_MAX = 18
HEAD_BYTES_MAX = 64 * 1024  # what is kept of a record: its own head, and that of the HTTP message
_BODY_DIGEST_BYTES = 32


class RecordHead(NamedTuple):
    """The beginning of one record.

    Attributes:
        offset: of its gzip member.
        size: bytes of the member.
        fields: of the record's own head; names in lower case.
        block: the beginning of its block: an HTTP head, or the fields of a note.
        body: BLAKE2b of all that follows the HTTP head, if it was asked for. Two HTTP messages of one digest have equal
            bodies.
    """

    offset: int
    size: int
    fields: dict[bytes, bytes]
    block: bytes
    body: bytes = b""


def record_heads(path: Path, *, has_bodies: bool = False) -> Iterator[RecordHead]:
    """Yield the head of each whole record, with a digest of its body if that is asked for.

    Raises:
        CorruptionError: after those before it, for a record that is incomplete or cannot be unpacked; after all, if a
            gzip member is no WARC record, or has more than the one that was yielded.

    Cost: that of unpacking the file, and 10 us a record; 0.6 MB of memory.
    """
    begun: list[_Beginning] = []

    def sink() -> _Beginning:
        begun[:] = [_Beginning(has_bodies)]
        return begun[0]

    with path.open("rb") as file:
        offset, strange = 0, None
        try:
            for end in member_ends(file, sink):
                head, _, block = begun[0].data.partition(_HEAD_END)
                record = RecordHead(offset, end - offset, head_fields(head), block, begun[0].digest())
                strange = strange or _strangeness(path, record, head, begun[0].size)
                yield record
                offset = end
        except EOFError:
            raise CorruptionError(path, offset, "a whole record", "the end of the file") from None
        except ValueError as error:
            raise CorruptionError(path, offset, "a gzip member", str(error)) from error
    if strange is not None:
        raise strange


def _strangeness(path: Path, record: RecordHead, head: bytes, size: int) -> CorruptionError | None:
    """Return what is wrong with a gzip member that unpacks to `size` bytes: it is not one WARC record."""
    if not head.startswith(b"WARC/"):
        return CorruptionError(path, record.offset, "a WARC record", f"what begins with {head[:16]!r}")
    told = record.fields.get(b"content-length", b"")
    if told.isdigit() and len(told) <= _DIGITS_MAX and size > len(head) + int(told) + 2 * len(_HEAD_END):
        more = "more: `warcio recompress OLD NEW` makes a file with a member for each"
        return CorruptionError(path, record.offset, "one record in a gzip member", more)
    return None


def head_fields(head: bytes) -> dict[bytes, bytes]:
    """Return the fields of a head by their names in lower case; of several with one name, the first."""
    pairs = [line.partition(b":") for line in reversed(head.split(b"\r\n"))]
    return {name.lower(): value.strip() for name, colon, value in pairs if colon}


class _Beginning:
    """Keeps the first bytes that a member unpacks to, and a digest of its body."""

    def __init__(self, has_body: bool) -> None:
        self.data = b""
        self.size = 0
        self._body = PayloadDigest(blake2b(digest_size=_BODY_DIGEST_BYTES), heads=2) if has_body else None

    def feed(self, piece: bytes) -> None:
        self.size += len(piece)
        if self._body is not None:
            self._body.update(piece)
        if len(self.data) < HEAD_BYTES_MAX:
            self.data += piece[: HEAD_BYTES_MAX - len(self.data)]

    def digest(self) -> bytes:
        return b"" if self._body is None else self._body.digest()

    def end(self) -> None:
        """Do nothing; the beginning is complete."""
