"""The mark of a directory of WARC files, which is missing when its disk is unmounted.

The first line of ``.bigcrawl`` is the directory's id. Each further line is the URL of a store that is a directory and
has a file ``.bigcrawl-<id>``. A file elsewhere records a line ``<id> <directory>``, so that the next start notices
another directory.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.private_files import FILE_MODE, opener, whole_file

if TYPE_CHECKING:
    from pathlib import Path

MARK: Final = ".bigcrawl"
_ID_CHARS: Final = 16


class DirectoryMark:
    """The mark of one directory. Nothing is recorded if the directory of `record` is missing."""

    def __init__(self, directory: Path, mode: int = FILE_MODE, record: Path | None = None) -> None:
        self._mode = mode
        self.directory = directory
        self._path = directory / MARK
        self._record = record
        self._is_recorded = False
        self._id = ""

    def exists(self) -> bool:
        return self._path.exists()

    def require_id(self) -> str:
        """Return the id, a new one for a new directory. Raise FileNotFoundError if a known id is missing or differs."""
        lines = self._read_lines()
        known = self._id or self._recorded_id()
        if not known and not lines:
            lines = self._make_mark()
        self._id = known or lines[0]
        if lines[:1] != [self._id]:
            removed = f", after removing {self._record}" if self._record is not None else ""
            raise FileNotFoundError(
                errno.ENOENT,
                "it is not the directory that this crawl has, or it is not mounted: mount it, bring it back, or start "
                f"again with this one{removed}",
                str(self._path.parent),
            )
        if not self._is_recorded:
            self._record_id()
        return self._id

    def has_store(self, url: str) -> bool:
        return url in self._read_lines()[1:]

    def record_store(self, url: str) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, f"{url}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)

    def _read_lines(self) -> list[str]:
        try:
            return self._path.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _recorded_id(self) -> str:
        self._is_recorded = False
        if self._record is None or not self._record.exists():
            return ""
        rows = [line.partition(" ") for line in self._record.read_text(errors="replace").split("\n")]
        ids = [name for name, _, directory in rows if len(name) == _ID_CHARS and directory == self._directory_name]
        self._is_recorded = bool(ids)
        return ids[-1] if ids else ""

    def _record_id(self) -> None:
        if self._record is not None and self._record.parent.exists():
            with open(self._record, "a", opener=opener) as file:  # even after a torn line
                file.write(f"\n{self._id} {self._directory_name}\n")
                file.flush()
                os.fsync(file.fileno())
        self._is_recorded = True

    @property
    def _directory_name(self) -> str:
        return str(self._path.parent.absolute())

    def _make_mark(self) -> list[str]:
        with (
            suppress(FileExistsError),  # another node was faster
            whole_file(self._path, self._mode, os.link) as file,
        ):
            file.write(f"{secrets.token_hex(_ID_CHARS // 2)}\n".encode())
        return self._read_lines()
