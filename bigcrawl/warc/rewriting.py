"""Rewrites a WARC file with some records replaced by references; all others stay byte for byte."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from isal import igzip_lib

from bigcrawl.warc.base32 import encode_sha1
from bigcrawl.warc.heads import head_fields
from bigcrawl.warc.members import CHUNK
from bigcrawl.warc.record_heads import record_heads
from bigcrawl.warc.records import SAME_PAYLOAD, pack_member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LINE_END: Final = b"\r\n"
_HEAD_END: Final = b"\r\n\r\n"
_HEADS_BYTES_MAX: Final = 1 << 20
_REPLACED: Final = frozenset(
    {
        *(b"warc-type", b"warc-profile", b"warc-refers-to", b"warc-refers-to-target-uri", b"warc-refers-to-date"),
        *(b"warc-truncated", b"warc-block-digest", b"content-length"),
    }
)


class NewReference(NamedTuple):
    offset: int
    record_id: bytes
    date: bytes
    target: bytes


def rewrite_file(path: Path, file: BinaryIO, references: Iterator[NewReference]) -> tuple[int, int]:
    """Copy a WARC file with these references, in order of offset; return how many were made, and how many failed."""
    changed = missed = 0
    wanted = next(references, None)
    with path.open("rb") as source:
        for record in record_heads(path):
            while wanted is not None and wanted.offset < record.offset:
                missed += 1
                wanted = next(references, None)
            data = b""
            if wanted is not None and wanted.offset == record.offset:
                source.seek(record.offset)
                data = _reference_record(_unpack_beginning(source.read(min(record.size, _HEADS_BYTES_MAX))), wanted)
                missed += not data
                wanted = next(references, None)
            if data:
                file.write(pack_member(data))
                changed += 1
            else:
                _copy_bytes(source, record.offset, record.size, file)
    return changed, missed + (wanted is not None) + sum(1 for _ in references)


def _reference_record(beginning: bytes, reference: NewReference) -> bytes:
    head, _, rest = beginning.partition(_HEAD_END)
    http_head, end, _ = rest.partition(_HEAD_END)
    if not end or not head_fields(head).get(b"content-type", b"").startswith(b"application/http"):
        return b""
    block = http_head + _HEAD_END
    version, *lines = head.split(_LINE_END)
    kept = [line for line in lines if line.partition(b":")[0].lower() not in _REPLACED]
    digest = encode_sha1(hashlib.sha1(block, usedforsecurity=False).digest())
    told = [
        version,
        b"WARC-Type: revisit",
        *kept,
        b"WARC-Profile: " + SAME_PAYLOAD,
        b"WARC-Refers-To: " + reference.record_id,
        b"WARC-Refers-To-Target-URI: " + reference.target,
        b"WARC-Refers-To-Date: " + reference.date,
        b"WARC-Truncated: length",
        b"WARC-Block-Digest: sha1:" + digest,
        b"Content-Length: %d" % len(block),
    ]
    return b"".join((_LINE_END.join(told), _HEAD_END, block, _HEAD_END))


def _unpack_beginning(data: bytes) -> bytes:
    return bytes(igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP).decompress(data, _HEADS_BYTES_MAX))


def _copy_bytes(source: BinaryIO, offset: int, size: int, file: BinaryIO) -> None:
    source.seek(offset)
    while size:
        piece = source.read(min(size, CHUNK))
        if not piece:
            raise EOFError(f"{source.name} has become shorter")
        file.write(piece)
        size -= len(piece)
