"""A file system seam on which a process dies, or a disk fills up, at an operation of the test's choice."""

from __future__ import annotations

import errno
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterable

    from bigcrawl.drum.files import AnyPath


class SimulatedCrashError(BaseException):
    """The process is dead: no handler in the code under test may catch this."""


class Fault(Enum):
    """What happens at the chosen operation."""

    CRASH_BEFORE = "crash before"
    CRASH_DURING = "crash during"
    CRASH_AFTER = "crash after"
    DISK_FULL = "disk full"
    FAILS_AFTER = "fails after"


class FaultyFiles(DiskFiles):
    """The real file system until operation `at` (counted from 1, changes only) meets its fault.

    After a crash every further operation crashes too. A full disk fails `lasting` operations in a row,
    each after half of what it should have written, and then has room again. A network file system may
    fail them in a row too, each after it has done all that it was asked for.
    """

    def __init__(self, at: int = 0, fault: Fault = Fault.CRASH_BEFORE, lasting: int = 1) -> None:
        self.operations = 0
        self.is_dead = False
        self.log: list[str] = []
        self._at = at
        self._fault = fault
        self._lasting = lasting

    def fail(self, at: int, fault: Fault) -> None:
        """Choose another operation, counted from the first, and another fault."""
        self._at, self._fault = at, fault

    def mend(self) -> None:
        """Let nothing fail any more."""
        self._at, self._lasting = 0, 0

    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        data = b"".join(chunks)
        whole, half = super().write_new, data[: len(data) // 2]
        self._change("write", path, lambda: whole(path, (data,)), lambda: whole(path, (half,)))

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        write, half = super().write_at, data[: len(data) // 2]
        self._change(
            "append",
            path,
            lambda: write(path, offset, data, create=create),
            lambda: write(path, offset, half, create=create),
        )

    def truncate(self, path: AnyPath, size: int) -> None:
        act = super().truncate
        self._change("cut", path, lambda: act(path, size))

    def read(self, path: AnyPath, offset: int = 0, size: int | None = None) -> bytes:
        self._live()
        return super().read(path, offset, size)

    def map(self, path: AnyPath) -> mmap.mmap:
        self._live()
        return super().map(path)

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        act = super().replace
        self._change("replace", target, lambda: act(source, target))

    def link(self, source: AnyPath, target: AnyPath) -> None:
        act = super().link
        self._change("link", target, lambda: act(source, target))

    def unlink(self, path: AnyPath) -> None:
        act = super().unlink
        self._change("unlink", path, lambda: act(path))

    def make_directory(self, path: AnyPath) -> None:
        act = super().make_directory
        self._change("mkdir", path, lambda: act(path))

    def make_new_directory(self, path: AnyPath) -> None:
        act = super().make_new_directory
        self._change("mkdir", path, lambda: act(path))

    def remove_directory(self, path: AnyPath) -> None:
        act = super().remove_directory
        self._change("rmdir", path, lambda: act(path))

    def sync_file(self, path: AnyPath) -> None:
        act = super().sync_file
        self._change("sync", path, lambda: act(path))

    def sync_directory(self, path: AnyPath) -> None:
        act = super().sync_directory
        self._change("sync", path, lambda: act(path))

    def _live(self) -> None:
        if self.is_dead:
            raise SimulatedCrashError

    def _change(
        self, verb: str, path: AnyPath, act: Callable[[], None], act_half: Callable[[], None] | None = None
    ) -> None:
        self._live()
        self.operations += 1
        self.log.append(f"{verb} {Path(path).name}")
        if not self._at <= self.operations < self._at + self._lasting:
            act()
            return
        if act_half and self._fault in {Fault.CRASH_DURING, Fault.DISK_FULL}:
            act_half()
        if self._fault is Fault.DISK_FULL:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        if self._fault in {Fault.CRASH_AFTER, Fault.FAILS_AFTER}:
            act()
        if self._fault is Fault.FAILS_AFTER:
            raise OSError(errno.EIO, "Input/output error", str(path))
        self.is_dead = True
        raise SimulatedCrashError
