"""The state of forms on disk: files of JSON lines that are only appended to.

    <directory>/<key of the form>/<process>.jsonl

Each process writes files of its own, and reads those of all others, so nodes need no lock, and a line that a kill cut
off is the last of its file. The meaning of a line does not depend on its place (`Campaign.fold`), and one that is there
twice counts once. So after an error, which leaves it uncertain what a file has, the same lines go into another one.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.json_text import read_json
from bigcrawl.private_files import make_private_directory
from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl_forms.disk import StateDisk

_SUFFIX: Final = ".jsonl"


class Journal:
    """The files of one form; read from where the last reading ended."""

    def __init__(self, directory: Path, disk: StateDisk) -> None:
        self._disk = disk
        self._reader = _Reader(directory)
        self._writer = _Writer(directory)
        self._is_syncing = asyncio.Lock()
        self._unsafe: list[bytes] = []

    async def read_new(self) -> list[dict[str, Any]]:
        """Return the entries of other processes since the last call, and at first those of all files."""
        return await self._disk.do(partial(self._reader.read_new, self._writer.path))

    def append(self, entry: dict[str, Any]) -> None:
        """Append an entry, which is safe after the next `sync`."""
        self._unsafe.append(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    async def sync(self) -> None:
        """Wait until all that was appended by now is on the medium, in its order."""
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
