"""Tells a directory of WARC files from what else may come to be at its path, as when a disk is unmounted.

The directory has a file ``.bigcrawl``. Its first line is the directory's id. Each further line is the URL of a store
that is a directory and has a file ``.bigcrawl-<id>`` since the first file was moved there.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.private_files import FILE_MODE, name_part

if TYPE_CHECKING:
    from pathlib import Path

MARK: Final = ".bigcrawl"


class DirectoryMark:
    """The mark of one directory, with the permissions `mode`. All methods raise OSError if the disk refuses."""

    def __init__(self, directory: Path, mode: int = FILE_MODE) -> None:
        self._mode = mode
        self._path = directory / MARK
        self._id = ""

    def __repr__(self) -> str:
        return f"<DirectoryMark {self._path} {self._id}>"

    def exists(self) -> bool:
        """Whether a crawl has marked the directory."""
        return self._path.exists()

    def require(self) -> str:
        """Return the id, made if the directory has none yet. Later, fail unless it is there and the same."""
        lines = self._lines()
        if not self._id and not lines:
            lines = self._make()
        self._id = self._id or lines[0]
        if lines[:1] != [self._id]:
            raise FileNotFoundError(
                errno.ENOENT,
                "it is not the directory that this crawl has, or it is not mounted: mount it, bring it back, or start "
                "again with this one",
                str(self._path.parent),
            )
        return self._id

    def has_store(self, url: str) -> bool:
        """Whether files were moved to this store before."""
        return url in self._lines()[1:]

    def note_store(self, url: str) -> None:
        """Record that the store has its mark."""
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, f"{url}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)

    def _lines(self) -> list[str]:
        try:
            return self._path.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _make(self) -> list[str]:
        temporary = self._path.with_name(f"{MARK}.{name_part()}.new")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode)
        try:
            os.write(fd, f"{secrets.token_hex(8)}\n".encode())
            os.fsync(fd)
            with suppress(FileExistsError):  # another node was faster
                os.link(temporary, self._path)
        finally:
            os.close(fd)
            temporary.unlink()
        return self._lines()
