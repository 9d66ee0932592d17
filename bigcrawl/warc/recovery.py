"""Closes the WARC files of writers that died.

A writer that is killed leaves a ``.open`` file whose lock is free. `writers` says when that proves its death. The file
contains whole gzip members and perhaps the beginning of one more. That torn tail is cut off, and the file gets its
final name. A response whose request was torn off stays: it is a whole record, and may be the only copy of its page.

A whole member that cannot be unpacked does not come from a killed writer, but from a disk or power failure. In that
case everything from it on is first copied next to the file, as ``<name>.damaged``, unless it is all zeros (blocks that
were allocated and never written). A number follows if there is such a file of an earlier time.

A file may have an index if it was complete once and got its ``.open`` back by hand. If bytes are cut off such a file,
the index is removed first, because it would describe records that are gone.

Memory: that of `members`.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.files import OPEN_SUFFIX, Files, OsFiles, lock_named, written_through
from bigcrawl.warc.members import CHUNK, member_ends
from bigcrawl.warc.writers import QUIET_S, is_being_begun, may_be_written_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

DAMAGED_SUFFIX = ".damaged"
_NEW_SUFFIX = ".new"
_DOUBT = (
    f"it was begun on another machine, or before this one was started, and changed in the last {QUIET_S / 60:g} "
    "minutes: it may be written there; call again later"
)


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


class PerhapsWrittenError(OSError):
    """The file's lock is free, but its writer may live on another machine."""


class _StoppedError(Exception):
    """The caller wants to stop; the file stays as it is."""


def recover(
    directory: str | Path,
    *,
    should_stop: Callable[[], bool] | None = None,
    remove_indexes: Callable[[Path], object] | None = None,
    files: Files | None = None,
) -> list[Recovered]:
    """Close every abandoned ``.open`` file of the directory. Files in use, or perhaps in use, are never touched.

    A file that cannot be recovered is logged and left for the next time; the others are still recovered.

    Args:
        directory: other nodes may use it, and recover its files at the same time.
        should_stop: called every few milliseconds; once it returns True, the current file stays as it is.
        remove_indexes: called with the final name of a file before bytes are cut off or it is removed; removes its
            indexes, durably.
        files: changes them.
    """
    recovered = []
    doubtful = 0
    for path in sorted(Path(directory).glob(f"*{OPEN_SUFFIX}")):
        try:
            result = recover_file(path, should_stop=should_stop, remove_indexes=remove_indexes, files=files)
        except _StoppedError:
            break
        except PerhapsWrittenError:
            doubtful += 1
        except OSError as error:
            logger.warning("%(path)s cannot be recovered now: %(error)s", {"path": path, "error": error})
        else:
            if result:
                recovered.append(result)
    if doubtful:
        found = {"files": doubtful, "directory": directory, "minutes": QUIET_S / 60}
        logger.info(
            "%(files)d files in %(directory)s that end in .open are not closed: they were begun on other machines, or "
            "before this one was started, and changed in the last %(minutes)g minutes",
            found,
        )
    return recovered


def recover_file(
    path: Path,
    *,
    should_stop: Callable[[], bool] | None = None,
    remove_indexes: Callable[[Path], object] | None = None,
    files: Files | None = None,
    was_complete: bool = False,
) -> Recovered | None:
    """Close one ``.open`` file, as `recover` does. None if it is in use, or being begun, or gone.

    Args:
        path: the file.
        should_stop: as that of `recover`.
        remove_indexes: as that of `recover`.
        files: changes it.
        was_complete: it had its final name, so that it has no writer.

    Raises:
        PerhapsWrittenError: it may be in use on another machine.
        OSError: the disk refuses, or the final name is taken; the file is unchanged, or shorter.
    """
    files = files or OsFiles()
    try:
        fd = files.open(path)
    except FileNotFoundError:
        return None
    try:
        if (not was_complete and is_being_begun(fd, path)) or not lock_named(fd, path):
            return None
        if not was_complete and may_be_written_elsewhere(fd, path):
            raise PerhapsWrittenError(errno.EBUSY, _DOUBT, str(path))
        target = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
        if target.exists():
            raise FileExistsError(f"{target.name} already exists; move one of the two away")
        with os.fdopen(fd, "rb", buffering=0, closefd=False) as file:
            records, kept, is_damaged = _whole_records(file, should_stop or _never)
            cut = os.fstat(fd).st_size - kept
            if is_damaged:
                _keep_damaged(file, kept, target, files)
        if remove_indexes is not None and (cut or not kept):
            remove_indexes(target)
        if not kept:
            files.remove(path)
            return Recovered(path, 0, 0, cut)
        if cut:
            files.truncate(fd, kept)
        files.sync(fd)
        files.rename(path, target)
        return Recovered(target, records, kept, cut)
    finally:
        files.close(fd)


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


def _is_zeros(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
    while chunk := file.read(CHUNK):
        if chunk.strip(b"\0"):
            return False
    return True


def _keep_damaged(file: BinaryIO, offset: int, target: Path, files: Files) -> None:
    """Copy everything from `offset` on next to the file; the copy has its name and is on the medium."""
    copy = target.with_name(target.name + DAMAGED_SUFFIX)
    for number in itertools.count(1):
        if not copy.exists():
            break
        if _is_rest(file, offset, copy):
            return  # kept already, by a recovery that was interrupted
        copy = target.with_name(f"{target.name}{DAMAGED_SUFFIX}.{number}")
    new = copy.with_name(copy.name + _NEW_SUFFIX)
    files.remove(new)
    try:
        with written_through(files, new) as written:
            file.seek(offset)
            while chunk := file.read(CHUNK):
                written.write(chunk)
        files.rename(new, copy)
    except OSError:
        files.remove(new)
        raise
    error = CorruptionError(target, offset, "a gzip member", "other bytes")
    logger.error("%(error)s; they are kept in %(copy)s", {"error": error, "copy": copy})


def _is_rest(file: BinaryIO, offset: int, copy: Path) -> bool:
    """Whether a file is equal to another one from an offset on."""
    if copy.stat().st_size != os.fstat(file.fileno()).st_size - offset:
        return False
    file.seek(offset)
    with copy.open("rb") as other:
        while chunk := other.read(CHUNK):
            if chunk != file.read(len(chunk)):
                return False
    return True


def _never() -> bool:
    return False
