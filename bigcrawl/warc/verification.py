from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from bigcrawl.warc.base32 import encode_sha1
from bigcrawl.warc.heads import HEAD_BYTES_MAX, HEAD_END, NEXT_BYTES, is_next, length_of, record_head
from bigcrawl.warc.members import TORN, packing_of, spans_of_file
from bigcrawl.warc.record_heads import PayloadDigest

_WARC_TAILS: Final = (HEAD_END, b"\n\n")
_ARC_TAILS: Final = (b"\n", b"")


class VerifiedFile(NamedTuple):
    records: int
    damaged: int
    problem: str


def verify_file(path: str | Path) -> VerifiedFile:
    """Count a file's sound records and its damaged places. An empty file is not sound."""
    path = Path(path)
    records = damaged = 0
    first = ""
    packing = packing_of(path)
    with path.open("rb") as file:
        for begin, _, problem, _ in spans_of_file(file, _RecordCheck, packing):
            if not problem:
                records += 1
                continue
            damaged += 1
            first = first or (
                f"torn record at byte {begin}" if problem == TORN else f"bad record at byte {begin}: {problem}"
            )
    return VerifiedFile(records, damaged, first if records or damaged else "it is empty")


class _RecordCheck:
    def __init__(self) -> None:
        self._begun = b""
        self._fields: dict[bytes, bytes] | None = None
        self._told = 0
        self._there = 0
        self._digest = hashlib.sha1(usedforsecurity=False)
        self._payload: PayloadDigest | None = None
        self._tail = b""
        self._tails = _WARC_TAILS
        self._problem = ""

    def feed(self, piece: bytes) -> None:
        if self._problem:
            return
        if self._fields is None:
            self._begun += piece
            found = record_head(self._begun)
            if found is None:
                if len(self._begun) > HEAD_BYTES_MAX:
                    self._problem = "no end of its head"
                return
            self._tails = _WARC_TAILS if self._begun.startswith(b"WARC/") else _ARC_TAILS
            piece = self._begun[found[1] :]
            self._read_head(*found)
        block = piece[: max(self._told - self._there, 0)]
        self._digest.update(block)
        if self._payload is not None:
            self._payload.update(block)
        self._there += len(piece)
        if len(self._tail) < NEXT_BYTES:
            self._tail += piece[len(block) :][:NEXT_BYTES]

    def end(self) -> str:
        if not self._problem and self._fields is None:
            self._problem = f"begins with {self._begun[:16]!r}, and has no end of its head"
        self._problem = self._problem or self._end_problem() or self._compare_digest("block", self._digest.digest())
        if not self._problem and self._payload is not None:
            self._problem = self._compare_digest("payload", self._payload.digest())
        return self._problem

    def _end_problem(self) -> str:
        if self._there < self._told:
            return f"{self._told - self._there} bytes short of its Content-Length"
        if is_next(self._tail):
            return "more than one record in a member"
        if self._tail.strip(b"\r\n"):
            there = self._there - len(HEAD_END)
            return f"its Content-Length is {self._told}, and its block has {there} bytes"
        return "" if self._tail in self._tails else f"ends in {self._tail!r}"

    def _compare_digest(self, what: str, digest: bytes) -> str:
        assert self._fields is not None
        expected = self._fields.get(b"warc-%s-digest" % what.encode(), b"")
        found = b"sha1:" + encode_sha1(digest)
        if len(expected) == len(found) and expected[:5].lower() == b"sha1:" and expected[5:].upper() != found[5:]:
            return f"{what} digest is {found.decode()}, not {expected.decode(errors='replace')}"
        return ""

    def _read_head(self, fields: dict[bytes, bytes], block_at: int) -> None:
        self._fields = fields
        if b"warc-type" not in fields:
            self._problem = "no WARC-Type"
        told = length_of(fields)
        if told is None:
            self._problem = f"Content-Length is {fields.get(b'content-length', b'')[:40]!r}"
        self._told = told or 0
        self._begun = b""
        # A revisit has the digest of a payload that it omits.
        if b"warc-payload-digest" in fields and fields.get(b"warc-type") != b"revisit":
            has_head = fields.get(b"content-type", b"").lower().startswith(b"application/http")
            self._payload = PayloadDigest(hashlib.sha1(usedforsecurity=False), heads=int(has_head))
