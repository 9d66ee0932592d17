"""The state of forms on disk: files of JSON lines that are only appended to.

    <directory>/<key of the form>/<process>.jsonl

Each process writes files of its own, and reads those of all others, so nodes need no lock, and a line that a kill cut
off is the last of its file. The meaning of a line does not depend on its place (`Campaign.fold`), and one that is there
twice counts once. So after an error, which leaves it uncertain what a file has, the same lines go into another one.

The threads that read and write the state of forms, so that no disk holds up the event loop.

What a full or broken disk refuses is tried again each second, and a disk that does not answer is waited for. Either is
logged once. The pages that need the disk wait in memory meanwhile, BIGCRAWL_IN_PROCESS_MAX at most, because none of
them is acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bigcrawl.json_text import read_json
from bigcrawl.private_files import make_private_directory
from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SUFFIX: Final = ".jsonl"


class Journal:
    """The files of one form; each reading continues after the last one."""

    def __init__(self, directory: Path, disk: StateDisk) -> None:
        self._disk = disk
        self._reader = _Reader(directory)
        self._writer = _Writer(directory)
        self._is_syncing = asyncio.Lock()
        self._unsafe: list[bytes] = []

    async def read_new(self) -> list[dict[str, Any]]:
        """Return the entries of other processes since the last call; the first call reads all files."""
        return await self._disk.do(partial(self._reader.read_new, self._writer.path))

    def append(self, entry: dict[str, Any]) -> None:
        """Append an entry, which is safe after the next `sync`."""
        self._unsafe.append(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    async def sync(self) -> None:
        """Wait until all entries appended so far are on disk, in their order."""
        async with self._is_syncing:
            if lines := len(self._unsafe):
                await self._disk.do(partial(self._writer.write, b"".join(self._unsafe)))
                del self._unsafe[:lines]


class _Writer:
    def __init__(self, directory: Path) -> None:
        self.path: Path | None = None
        self._directory = directory
        self._files = OsFiles()
        self._fd: int | None = None
        self._has_lines = False

    def write(self, lines: bytes) -> None:
        """Append lines and sync them.

        Raises:
            OSError: they are not safe; the next call begins another file.
        """
        try:
            fd, rest = self._open(), memoryview(lines)
            while rest:
                rest = rest[self._files.write(fd, rest) :]
            self._files.sync(fd)
            self._has_lines = True
        except OSError:
            self._give_up()
            raise

    def _open(self) -> int:
        if self._fd is None:
            if self.path is None:  # later it may be missing because its disk is
                make_private_directory(self._directory)
            self.path = self._directory / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
            self._fd, self._has_lines = self._files.create(self.path), False
            for each in (self._directory, *self._directory.parents[:2]):
                self._files.sync_directory(each)
        return self._fd

    def _give_up(self) -> None:
        fd, self._fd = self._fd, None
        with suppress(OSError):
            if fd is not None:
                self._files.close(fd)
            if self.path is not None and not self._has_lines:
                self._files.remove(self.path)


class _Reader:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read_bytes: dict[str, int] = {}

    def read_new(self, own: Path | None) -> list[dict[str, Any]]:
        """Return the new entries of all files but the own one.

        Raises:
            OSError: some could not be read; the next call returns them all.
        """
        try:
            names = sorted(entry.name for entry in os.scandir(self._directory) if entry.name.endswith(_SUFFIX))
        except FileNotFoundError:
            return []
        ends = dict(self._read_bytes)
        entries: list[dict[str, Any]] = []
        for name in names:
            if own is None or name != own.name:
                with suppress(FileNotFoundError):  # given up without a line
                    entries += self._read_file(name, ends)
        self._read_bytes = ends
        return entries

    def _read_file(self, name: str, ends: dict[str, int]) -> Iterator[dict[str, Any]]:
        begin = ends.get(name, 0)
        path = self._directory / name
        if path.stat().st_size <= begin:
            return
        with path.open("rb") as file:
            file.seek(begin)
            for line in file:
                if not line.endswith(b"\n"):  # cut off by a kill, or not yet whole
                    break
                begin += len(line)
                entry = _entry_of(line)
                if entry is not None:
                    yield entry
        ends[name] = begin


def _entry_of(line: bytes) -> dict[str, Any] | None:
    try:
        entry = read_json(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


logger = logging.getLogger(__name__)

T = TypeVar("T")

HANGING_S: Final = 10.0
RETRY_S: Final = 1.0


class StateDisk:
    """The disk of a directory; it does one job at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._is_used = asyncio.Lock()
        self._troubles = 0

    async def do(self, work: Callable[[], T]) -> T:
        """Run a function in a thread, and retry it every second while it raises OSError."""
        doing = asyncio.ensure_future(self._try(work))
        try:
            await asyncio.wait({doing}, timeout=HANGING_S)
            if doing.done() and not isinstance(doing.exception(), OSError):
                return doing.result()
            with self._in_trouble(str(doing.exception()) if doing.done() else f"no answer for {HANGING_S:g} s"):
                while True:
                    try:
                        return await doing
                    except OSError:
                        await asyncio.sleep(RETRY_S)
                        doing = asyncio.ensure_future(self._try(work))
        finally:
            doing.cancel()

    async def _try(self, work: Callable[[], T]) -> T:
        async with self._is_used:
            done: Future[T] = Future()
            done.set_running_or_notify_cancel()
            # A daemon: the process can end while its disk hangs.
            threading.Thread(target=_do_work, args=(done, work), name="bigcrawl-forms", daemon=True).start()
            return await asyncio.wrap_future(done)

    @contextlib.contextmanager
    def _in_trouble(self, problem: str) -> Iterator[None]:
        self._troubles += 1
        if self._troubles == 1:
            logger.error(
                "the state of forms in %(directory)s cannot be used: %(problem)s; forms, their results and records "
                "wait until it can, and nothing of them is acknowledged: make room, or stop the crawl and name another "
                "directory with -a forms_dir=",
                {"directory": self._directory, "problem": problem},
            )
        try:
            yield
            if self._troubles == 1:
                logger.info("the state of forms in %(directory)s can be used again", {"directory": self._directory})
        finally:
            self._troubles -= 1


def _do_work(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - for who waits for it
        done.set_exception(error)
