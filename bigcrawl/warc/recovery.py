"""Closes the WARC files of writers that died.

A torn last member of a killed writer is cut off. A response without its request stays: it may be the only copy of its
page. A whole member that cannot be unpacked comes from a disk or power failure. All bytes from it on are first copied
to ``<name>.damaged``, unless they are zeros; they may refer to lost records. In a file that was complete, sound members
that follow are kept.

The writer of an ``.open`` file may live on another machine, where its lock is not seen from here: over NFS with
``nolock``, a locked file may look free. So a free lock proves that the writer is dead only if the file's first record
names this kernel's boot. Other files must also have been unchanged for `QUIET_S` by the file system's clock: a living
writer touches its file every `BEAT_S`.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bigcrawl.clock import boot_id
from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.files import OPEN_SUFFIX, QUIET_S, Files, OsFiles, lock_named, written_whole
from bigcrawl.warc.heads import head_fields
from bigcrawl.warc.members import CHUNK, TORN, spans_of_file
from bigcrawl.warc.record_heads import record_heads
from bigcrawl.warc.records import BOOT_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Range = tuple[int, int]

logger = logging.getLogger(__name__)

DAMAGED_SUFFIX = ".damaged"
_DOUBT = (
    f"it was begun on another machine, or before this one was started, and changed in the last {QUIET_S / 60:g} "
    "minutes: it may be written there; call again later"
)


@dataclass(frozen=True, slots=True)
class RecoveredFile:
    """The part of an abandoned file that was kept. A file without a whole record was removed."""

    path: Path
    kept_records: int
    kept_bytes: int
    cut_bytes: int


class PerhapsWrittenError(OSError):
    """The file's lock is free, but its writer may live on another machine."""


class _StoppedError(Exception):
    pass


def recover_directory(
    directory: str | Path,
    *,
    should_stop: Callable[[], bool] | None = None,
    remove_indexes: Callable[[Path], object] | None = None,
    files: Files | None = None,
) -> list[RecoveredFile]:
    """Close every abandoned ``.open`` file of the directory until `should_stop`; files in use stay."""
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
) -> RecoveredFile | None:
    """Close one ``.open`` file; None if it is in use or gone. `was_complete`: it had its final name."""
    files = files or OsFiles()
    try:
        fd = files.open(path)
    except FileNotFoundError:
        return None
    try:
        if (not was_complete and _is_being_begun(fd, path)) or not lock_named(fd, path):
            return None
        if not was_complete and _may_be_written_elsewhere(fd, path):
            raise PerhapsWrittenError(errno.EBUSY, _DOUBT, str(path))
        target = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
        if target.exists():
            raise FileExistsError(f"{target.name} already exists; rename or remove one of the two")
        with os.fdopen(fd, "rb", buffering=0, closefd=False) as file:
            records, sound, damaged = _divide_file(file, should_stop or _never_stop, goes_on=was_complete)
            kept = sum(end - begin for begin, end in sound)
            cut = os.fstat(fd).st_size - kept
            if damaged:
                _keep_damaged(file, damaged, target, files)
            if remove_indexes is not None and (cut or not kept):
                remove_indexes(target)
            if not kept:
                files.remove(path)
                return RecoveredFile(path, 0, 0, cut)
            if sound != [(0, kept)]:
                _copy_to(path, file, sound, files)
                again = recover_file(path, files=files, was_complete=True)
                return again and replace(again, cut_bytes=cut)
        if cut:
            files.truncate(fd, kept)
        files.sync(fd)
        files.rename(path, target)
        return RecoveredFile(target, records, kept, cut)
    finally:
        files.close(fd)


def _divide_file(
    file: BinaryIO, should_stop: Callable[[], bool], *, goes_on: bool
) -> tuple[int, list[_Range], list[_Range]]:
    """Return the number of whole members, their ranges, and the damaged ranges; unless `goes_on`, stop at damage."""
    records = 0
    sound: list[_Range] = []
    damaged: list[_Range] = []
    for begin, end, problem, is_whole in spans_of_file(file, lambda: _UncheckedRecord(should_stop)):
        if is_whole:
            records += 1
            if sound and sound[-1][1] == begin:
                begin = sound.pop()[0]  # noqa: PLW2901
            sound.append((begin, end))
        elif problem != TORN:
            damaged.append((begin, end if goes_on else os.fstat(file.fileno()).st_size))
            if not goes_on:
                break
    return records, sound, [one for one in damaged if not _is_zeros(file, one)]


class _UncheckedRecord:
    """Accepts any content, because a gzip member that unpacks is a whole record; watches for a stop."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop

    def feed(self, piece: bytes) -> None:
        if self._should_stop():
            raise _StoppedError

    def end(self) -> str:
        return ""


def _read_ranges(file: BinaryIO, ranges: list[_Range]) -> Iterator[bytes]:
    for begin, end in ranges:
        file.seek(begin)
        for at in range(begin, end, CHUNK):
            yield file.read(min(CHUNK, end - at))


def _is_zeros(file: BinaryIO, one: _Range) -> bool:
    return not any(piece.strip(b"\0") for piece in _read_ranges(file, [one]))


def _copy_to(path: Path, file: BinaryIO, ranges: list[_Range], files: Files) -> None:
    with written_whole(path, files) as written:
        written.writelines(_read_ranges(file, ranges))


def _keep_damaged(file: BinaryIO, damaged: list[_Range], target: Path, files: Files) -> None:
    copy = target.with_name(target.name + DAMAGED_SUFFIX)
    for number in itertools.count(1):
        if not copy.exists():
            break
        if _contains_ranges(copy, file, damaged):
            return  # kept by an interrupted recovery
        copy = target.with_name(f"{target.name}{DAMAGED_SUFFIX}.{number}")
    _copy_to(copy, file, damaged, files)
    error = CorruptionError(target, damaged[0][0], "a gzip member", "other bytes")
    logger.error("%(error)s; the damaged bytes are kept in %(copy)s", {"error": error, "copy": copy})


def _contains_ranges(copy: Path, file: BinaryIO, ranges: list[_Range]) -> bool:
    if copy.stat().st_size != sum(end - begin for begin, end in ranges):
        return False
    with copy.open("rb") as other:
        return all(other.read(len(piece)) == piece for piece in _read_ranges(file, ranges))


def _never_stop() -> bool:
    return False


def _is_being_begun(fd: int, path: Path) -> bool:
    """Return whether a writer may have just created the file, and not yet locked it."""
    return os.fstat(fd).st_size == 0 and _quiet_s(fd, path.parent) < QUIET_S


def _may_be_written_elsewhere(fd: int, path: Path) -> bool:
    """Return whether a file with a free lock may have a writer elsewhere; `fd` must be newly opened."""
    return not _is_begun_here(path) and _quiet_s(fd, path.parent) < QUIET_S


def _is_begun_here(path: Path) -> bool:
    try:
        first = next(record_heads(path), None)
    except CorruptionError:
        return False
    boot = boot_id()
    return (
        first is not None and boot != "" and head_fields(first.block).get(BOOT_FIELD.lower().encode()) == boot.encode()
    )


def _quiet_s(fd: int, directory: Path) -> float:
    with tempfile.TemporaryFile(dir=directory) as made_now:
        return os.fstat(made_now.fileno()).st_mtime - os.fstat(fd).st_mtime
