"""Checks any WARC file, record by record."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from bigcrawl.warc.base32 import encode_sha1
from bigcrawl.warc.members import member_ends
from bigcrawl.warc.payload_digest import PayloadDigest

# Limit for a record's head: ours are under 1 KB, and URLs are bounded; a longer one is not a WARC record.
_HEAD_BYTES_MAX = 64 * 1024
_HEAD_END = b"\r\n\r\n"
_FIELD = re.compile(
    rb"\r\n(?P<name>WARC-Type|WARC-Block-Digest|WARC-Payload-Digest|Content-Type|Content-Length): *"
    rb"(?P<value>[^\r\n]*)",
    re.IGNORECASE,
)


def verify(path: str | Path) -> tuple[int, str | None]:
    """Count the whole, well-formed records from the start of a file, and describe the first problem.

    Checks that each gzip member unpacks to exactly one record with correct length, block digest and payload digest;
    digests other than SHA-1 are ignored. Returns the count and the problem with its offset, or None if the file is
    sound. A file without records is not sound: no writer completes one.

    Raises:
        OSError: the file cannot be read.
    """
    records = 0
    with Path(path).open("rb") as file:
        offset = 0
        try:
            for end in member_ends(file, _RecordCheck):
                offset = end
                records += 1
        except EOFError:
            return records, f"torn record at byte {offset}"
        except ValueError as error:
            return records, f"bad record at byte {offset}: {error}"
    return records, None if records else "it is empty"


class _RecordCheck:
    """Checks one record: head, block of the announced length with its digests, two line ends."""

    def __init__(self) -> None:
        self._head = b""
        self._fields: dict[bytes, bytes] | None = None
        self._missing = 0
        self._digest = hashlib.sha1(usedforsecurity=False)
        self._payload: PayloadDigest | None = None
        self._tail = b""

    def feed(self, piece: bytes) -> None:
        if self._fields is None:
            self._head += piece
            head, separator, piece = self._head.partition(b"\r\n\r\n")
            if not separator:
                if len(self._head) > _HEAD_BYTES_MAX:
                    raise ValueError("no end of its head")
                return
            self._read_head(head)
        block = piece[: self._missing]
        self._digest.update(block)
        if self._payload is not None:
            self._payload.update(block)
        self._missing -= len(block)
        self._tail += piece[len(block) :]
        if len(self._tail) > len(b"\r\n\r\n"):
            raise ValueError("more than one record in a gzip member")

    def end(self) -> None:
        if self._fields is None:
            raise ValueError("no end of its head")
        if self._missing:
            raise ValueError(f"{self._missing} bytes short of its Content-Length")
        if self._tail != b"\r\n\r\n":
            raise ValueError(f"ends in {self._tail!r}")
        self._compare("block", self._digest.digest())
        if self._payload is not None:
            self._compare("payload", self._payload.digest())

    def _compare(self, what: str, digest: bytes) -> None:
        assert self._fields is not None
        expected = self._fields.get(b"warc-%s-digest" % what.encode(), b"")
        found = b"sha1:" + encode_sha1(digest)
        if expected.startswith(b"sha1:") and expected != found:
            raise ValueError(f"{what} digest is {found.decode()}, not {expected.decode(errors='replace')}")

    def _read_head(self, head: bytes) -> None:
        if not head.startswith(b"WARC/1."):
            raise ValueError(f"begins with {head[:16]!r}")
        self._fields = {field["name"].lower(): field["value"] for field in _FIELD.finditer(head)}
        if b"warc-type" not in self._fields:
            raise ValueError("no WARC-Type")
        length = self._fields.get(b"content-length", b"")
        if not length.isdigit():
            raise ValueError(f"Content-Length is {length!r}")
        self._missing = int(length)
        self._head = b""
        # A revisit's is that of the payload that it does not repeat.
        if b"warc-payload-digest" in self._fields and self._fields[b"warc-type"] != b"revisit":
            has_head = self._fields.get(b"content-type", b"").startswith(b"application/http")
            self._payload = PayloadDigest(hashlib.sha1(usedforsecurity=False), heads=int(has_head))
