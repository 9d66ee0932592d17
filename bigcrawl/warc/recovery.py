"""Closes the WARC files of writers that died, and checks any WARC file.

A writer that is killed leaves a ``.open`` file whose lock is free. The file contains whole gzip members and perhaps the
beginning of one more. That torn tail is cut off, and the file gets its final name. A response whose request was torn
off stays: it is a whole record, and may be the only copy of its page.

A whole member that cannot be unpacked does not come from a killed writer, but from a disk or power failure. In that
case everything from it on is first copied next to the file, as ``<name>.damaged``, unless it is all zeros (blocks that
were allocated and never written).

Memory: two buffers of `_CHUNK` bytes, whatever the size of a file or a record.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from base64 import b32encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from isal import igzip_lib

from bigcrawl.exceptions import CorruptionError
from bigcrawl.private_files import opener
from bigcrawl.warc.files import OPEN_SUFFIX, OsFiles, lock_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

DAMAGED_SUFFIX = ".damaged"
# Large enough to make the cost of a call negligible, small enough to check often whether to stop.
_CHUNK = 256 * 1024
# Limit for a record's head: ours are under 1 KB, and URLs are bounded; a longer one is not a WARC record.
_HEAD_BYTES_MAX = 64 * 1024
_FIELD = re.compile(rb"\r\n(?P<name>WARC-Type|WARC-Block-Digest|Content-Length): *(?P<value>[^\r\n]*)", re.IGNORECASE)
# isal's stub declares its exception as an instance.
_BadGzipError: type[Exception] = igzip_lib.error  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of an abandoned file.

    Attributes:
        path: its new name; its old name if it had no whole record and was removed.
        kept_records: whole records in it.
        kept_bytes: its new size.
        cut_bytes: how much was cut off its end.
    """

    path: Path
    kept_records: int
    kept_bytes: int
    cut_bytes: int


class _StoppedError(Exception):
    """The caller wants to stop; the file stays as it is."""


def recover(directory: str | Path, *, should_stop: Callable[[], bool] | None = None) -> list[Recovered]:
    """Close every abandoned ``.open`` file of the directory. Files in use are never touched.

    A file that cannot be recovered is logged and left for the next time; the others are still recovered.

    Args:
        directory: other nodes may use it, and recover its files at the same time.
        should_stop: called every few milliseconds; once it returns True, the current file stays as it is.
    """
    recovered = []
    for path in sorted(Path(directory).glob(f"*{OPEN_SUFFIX}")):
        try:
            result = _recover_file(path, should_stop or _never)
        except _StoppedError:
            break
        except OSError as error:
            logger.warning("%(path)s cannot be recovered now: %(error)s", {"path": path, "error": error})
        else:
            if result:
                recovered.append(result)
    return recovered


def verify(path: str | Path) -> tuple[int, str | None]:
    """Count the whole, well-formed records from the start of a file, and describe the first problem.

    Checks that each gzip member unpacks to exactly one record with correct length and block digest. Returns the count
    and the problem with its offset, or None if the file is sound.
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
    return records, None


def _recover_file(path: Path, should_stop: Callable[[], bool]) -> Recovered | None:
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "r+b", buffering=0) as file:
        if not lock_named(fd, path):
            return None
        target = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
        if target.exists():
            raise FileExistsError(f"{target.name} already exists; move one of the two away")
        records, kept, is_damaged = _whole_records(file, should_stop)
        cut = os.fstat(fd).st_size - kept
        if is_damaged:
            _keep_damaged(file, kept, target)
        os.ftruncate(fd, kept)
        files = OsFiles()
        if not kept:
            files.remove(path)
            return Recovered(path, 0, 0, cut)
        files.sync(fd)
        files.rename(path, target)
        return Recovered(target, records, kept, cut)


def _whole_records(file: BinaryIO, should_stop: Callable[[], bool]) -> tuple[int, int, bool]:
    """Return how many whole members the file begins with, where they end, and whether the rest is damaged."""
    records = kept = 0
    try:
        for end in member_ends(file, lambda: _Unchecked(should_stop)):
            kept = end
            records += 1
    except EOFError:
        return records, kept, False
    except ValueError:
        return records, kept, not _is_zeros(file, kept)
    return records, kept, False


def member_ends(file: BinaryIO, sink: Callable[[], _Sink]) -> Iterator[int]:
    """Unpack gzip members one after another, each into a new sink; yield the offset after each.

    Raises:
        EOFError: the file ends within a member.
        ValueError: a member is damaged, or its sink rejects it.
    """
    data = file.read(_CHUNK)
    offset = len(data)
    while data:
        member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        checker = sink()
        while not member.eof:
            if member.needs_input and not data:
                data = file.read(_CHUNK)
                offset += len(data)
                if not data:
                    raise EOFError
            try:
                piece = member.decompress(data, _CHUNK)
            except _BadGzipError as error:
                raise ValueError(f"cannot be unpacked ({error})") from error
            data = b""
            checker.feed(piece)
        checker.end()
        data = member.unused_data
        yield offset - len(data)
        if not data:
            data = file.read(_CHUNK)
            offset += len(data)


class _Sink(Protocol):
    """Receives the unpacked bytes of a member. Raises ValueError if they are invalid."""

    def feed(self, piece: bytes) -> None: ...

    def end(self) -> None: ...


class _Unchecked:
    """Accepts any content, and watches for a stop.

    gzip's checksum is enough for recovery, because the writer writes whole records only.
    """

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop

    def feed(self, piece: bytes) -> None:
        if self._should_stop():
            raise _StoppedError

    def end(self) -> None:
        """Do nothing; a whole member is a whole record."""


class _RecordCheck:
    """Checks one record: head, block of the announced length with its digest, two line ends."""

    def __init__(self) -> None:
        self._head = b""
        self._fields: dict[bytes, bytes] | None = None
        self._missing = 0
        self._digest = hashlib.sha1(usedforsecurity=False)
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
        expected = self._fields.get(b"warc-block-digest", b"")
        found = b"sha1:" + b32encode(self._digest.digest())
        if expected.startswith(b"sha1:") and expected != found:
            raise ValueError(f"block digest is {found.decode()}, not {expected.decode(errors='replace')}")

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


def _is_zeros(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
    while chunk := file.read(_CHUNK):
        if chunk.strip(b"\0"):
            return False
    return True


def _keep_damaged(file: BinaryIO, offset: int, target: Path) -> None:
    """Copy everything from `offset` on next to the file, before it is cut off."""
    copy_path = target.with_name(target.name + DAMAGED_SUFFIX)
    file.seek(offset)
    with open(copy_path, "wb", opener=opener) as copy:
        while chunk := file.read(_CHUNK):
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    error = CorruptionError(target, offset, "a gzip member", "other bytes")
    logger.error("%(error)s; they are kept in %(copy)s", {"error": error, "copy": copy_path})


def _never() -> bool:
    return False
