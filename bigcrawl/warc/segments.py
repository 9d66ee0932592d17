"""Appends exchanges to WARC files, so that neither a crash nor a full disk leaves part of a record behind.

Once `write` has returned, kill -9 loses nothing. If it has raised, the file ends as before. A file gets its final name
only when it is complete and synced. A power failure may lose what was written after the last sync.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.clock import Clock, SystemClock, boot_id
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.warc.directory_mark import DirectoryMark
from bigcrawl.warc.files import OPEN_SUFFIX, QUIET_S, Files, OsFiles, lock_named
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.records import (
    BOOT_FIELD,
    Exchange,
    exchange_records,
    new_record_id,
    pack_member,
    related_record,
    warcinfo_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.warc.records import Conversion, Note, Origin

logger = logging.getLogger(__name__)

# The maximum size that archives use.
BYTES_MAX = 1 << 30
_NAME_ATTEMPTS_MAX = 1000
# If a file was not touched for this time, another machine may have closed it.
_LATE_MS = int(QUIET_S * 1000) // 2


class WrittenRecords(NamedTuple):
    """The result of one `write`: records, bytes, a body's `origin`, and the SHA-1 `payload` of the response."""

    records: int
    size: int
    origin: Origin | None = None
    payload: bytes = b""


class _OpenSegment:
    def __init__(self, files: Files, fd: int, path: Path, record_sealed: Callable[[Path], object]) -> None:
        self._record_sealed = record_sealed
        self._files = files
        self._fd = fd
        self.open_path = path
        self.path = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
        self.warcinfo_id = new_record_id()
        self.size = 0
        self.synced_size = 0
        self._is_torn = False
        self._is_closed = False
        self.is_sealed = False
        self.is_lost = False
        self.shown_ms = 0

    def append(self, data: bytes) -> None:
        if self._is_torn:
            self._cut_back()
        self._is_torn = True
        try:
            view = memoryview(data)
            while view:
                view = view[self._files.write(self._fd, view) :]
        except BaseException:
            self._cut_back_if_possible()
            raise
        self.size += len(data)
        self._is_torn = False

    def sync(self) -> None:
        """Sync the file, and at first its name. Raise OSError if it was removed: nothing in it is safe."""
        if self._is_closed:
            return
        self._check_name()
        size = self.size
        self._files.sync(self._fd)
        if not self.synced_size:
            self._files.sync_directory(self.open_path.parent)
        self.synced_size = size

    def _check_name(self) -> None:
        if not self._files.is_at(self._fd, self.open_path):
            raise FileNotFoundError(errno.ENOENT, "another process has removed or closed the file", str(self.open_path))

    def touch(self, now_ms: int) -> bool:
        """Update the file's time, to show that it is in use; return False if its name is lost."""
        if self._is_closed:
            return True
        try:
            self.is_lost = not self._files.is_at(self._fd, self.open_path)
            if not self.is_lost:
                self._files.touch(self._fd)
                self.shown_ms = now_ms
        except OSError as error:
            logger.debug("%(path)s cannot be touched: %(error)s", {"path": self.open_path, "error": error})
        return not self.is_lost

    def forget_unsynced(self) -> None:
        """Cut off unsynced bytes; they will be written again elsewhere."""
        self.size = self.synced_size
        self._is_torn = True

    def seal(self) -> bool:
        """Sync, rename and unlock the file, or remove it if empty. After a failure it stays ``.open``."""
        if self._is_closed:
            return self.is_sealed
        self._is_closed = True
        try:
            self._try_to_seal()
        except OSError:
            logger.warning(
                "%(path)s is kept as it is and will be closed by the next start",
                {"path": self.open_path},
                exc_info=True,
            )
            return False
        if self.size:
            self.is_sealed = True
            self._record_sealed(self.path)
        return True

    def _try_to_seal(self) -> None:
        try:
            self._check_name()  # otherwise another process owns it
            if self._is_torn:
                self._cut_back()
            if self.size:
                self._files.sync(self._fd)
                self._files.rename(self.open_path, self.path)
            else:
                self._files.remove(self.open_path)
        finally:
            self._files.close(self._fd)

    def _cut_back(self) -> None:
        self._files.truncate(self._fd, self.size)
        self._is_torn = False

    def _cut_back_if_possible(self) -> None:
        try:
            self._cut_back()
        except OSError:
            # Retried later.
            logger.warning("%(path)s cannot be cut back now", {"path": self.open_path}, exc_info=True)


def _call_now(function: Callable[[], bool]) -> None:
    function()


def _ignore_path(path: Path) -> None: ...


def _do_nothing() -> None: ...


def _name_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text) or "_"


@dataclass(frozen=True, slots=True)
class SealingOptions:
    """How full files are sealed: `run` executes the sealing, which then calls `on_sealed` (must not raise)."""

    bytes_max: int = BYTES_MAX
    run: Callable[[Callable[[], bool]], object] = _call_now
    on_sealed: Callable[[Path], object] = _ignore_path


class WarcWriter:
    """Writes exchanges into an existing directory, one file at a time; several writers may share it."""

    def __init__(
        self,
        directory: str | Path | DirectoryMark,
        prefix: str,
        node: str,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        sealing: SealingOptions | None = None,
        origins: RecentOrigins | None = None,
    ) -> None:
        self._mark = directory if isinstance(directory, DirectoryMark) else None
        self.directory = directory.directory if isinstance(directory, DirectoryMark) else Path(directory)
        self._prefix = _name_part(prefix)
        self._node = _name_part(node)
        self._info = {BOOT_FIELD: boot_id()}
        self._clock = clock or SystemClock()
        self._files = files or OsFiles()
        self._sealing = sealing or SealingOptions()
        self._origins = origins or RecentOrigins(0)
        self._serial = 0
        self._segment: _OpenSegment | None = None

    @property
    def open_path(self) -> Path | None:
        return self._segment.open_path if self._segment else None

    def describe(self, name: str, value: str) -> None:
        self._info[name] = value

    def write(self, item: Exchange | Note | Conversion) -> WrittenRecords:
        """Append the records of an exchange, a note or a conversion; after a TransientStoreError, none was added."""
        try:
            self._give_up_lost_file()
            segment = self._segment = self._segment or self._create_segment()
            origin: Origin | None = None
            payload = b""
            if isinstance(item, Exchange):
                payload, origin = self._origins.look_up(item, segment)
                records = exchange_records(item, segment.warcinfo_id, payload=payload, origin=origin)
            else:
                records = [related_record(item, segment.warcinfo_id)]
            if not segment.size:
                now_ms = self._clock.now_ms()
                records.insert(0, warcinfo_record(segment.warcinfo_id, segment.path.name, now_ms, self._info))
            data = b"".join([pack_member(record) for record in records])
            segment.append(data)
        except OSError as error:
            raise TransientStoreError(self._error_text(error)) from error
        if isinstance(item, Exchange) and origin is None:
            self._origins.remember(item, payload, segment)
        if segment.size >= self._sealing.bytes_max:
            self._segment = None
            self._sealing.run(segment.seal)
        return WrittenRecords(len(records), len(data), origin, payload)

    def sync_function(self) -> Callable[[], None]:
        """Return a function that syncs the current file. After its OSError, call `give_up_file` and write again."""
        segment = self._segment
        return segment.sync if segment else _do_nothing

    def give_up_file(self) -> None:
        """Begin a new file; the current one keeps only its synced part."""
        self._origins.forget()
        segment, self._segment = self._segment, None
        if segment:
            segment.forget_unsynced()
            self._sealing.run(segment.seal)

    def touch(self) -> bool:
        segment = self._segment
        return segment is None or segment.touch(self._clock.now_ms())

    def _give_up_lost_file(self) -> None:
        segment = self._segment
        if segment is None:
            return
        now_ms = self._clock.now_ms()
        if segment.is_lost or (abs(now_ms - segment.shown_ms) > _LATE_MS and not segment.touch(now_ms)):
            logger.warning(
                "%(path)s was removed, or closed by another machine; a new file is begun", {"path": segment.open_path}
            )
            self.give_up_file()

    def close(self) -> bool:
        segment, self._segment = self._segment, None
        return segment is None or segment.seal()

    def _create_segment(self) -> _OpenSegment:
        if self._mark is not None:
            self._mark.require_id()
        now_ms = self._clock.now_ms()  # of all attempts, so that names are in order
        for _ in range(_NAME_ATTEMPTS_MAX):
            path = self.directory / self._next_name(now_ms)
            try:
                fd = self._files.create(path)
            except FileExistsError:
                continue
            try:
                # Between create and lock, a recovering node may take the file.
                is_ours = lock_named(fd, path)
            except BaseException:
                self._files.close(fd)
                self._files.remove(path)
                raise
            segment = _OpenSegment(self._files, fd, path, self._sealing.on_sealed)
            segment.shown_ms = self._clock.now_ms()
            if is_ours and not segment.path.exists():
                return segment
            if is_ours:
                segment.seal()  # empty: removes it
            else:
                self._files.close(fd)
        raise FileExistsError(
            errno.EEXIST,
            "all possible names of WARC files are taken in the directory; remove or move some",
            str(self.directory),
        )

    def _next_name(self, now_ms: int) -> str:
        stamp = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%d%H%M%S")
        serial = self._serial
        self._serial += 1
        return f"{self._prefix}-{stamp}{now_ms % 1000:03d}-{serial:05d}-{self._node}.warc.gz{OPEN_SUFFIX}"

    def _error_text(self, error: OSError) -> str:
        where = self.open_path or self.directory
        if isinstance(error, FileNotFoundError):
            return f"{where} cannot be written: {error.strerror}"
        try:
            free = f"{shutil.disk_usage(self.directory).free:,} bytes are free there"
        except OSError:
            free = "its free space cannot be read"
        return f"{where} cannot be written: {os.strerror(error.errno) if error.errno else error}; {free}"
