"""Decides whether the writer of an ``.open`` file may live on another machine, where its lock is not seen from here.

Over NFS with ``nolock``, a locked file may look free. So a free lock proves that the writer is dead only if the file's
first record names this kernel's boot. Other files must also have been unchanged for `QUIET_S` by the file system's
clock: a living writer touches its file every `BEAT_S`.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Final

from bigcrawl.clock import boot_id
from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.heads import head_fields
from bigcrawl.warc.record_heads import record_heads

if TYPE_CHECKING:
    from pathlib import Path

BEAT_S: Final = 60.0
QUIET_S: Final = 600.0
BOOT_FIELD: Final = "bootId"  # in warcinfo


def is_being_begun(fd: int, path: Path) -> bool:
    """Return whether a writer may have just created the file, and not yet locked it."""
    return os.fstat(fd).st_size == 0 and _quiet_s(fd, path.parent) < QUIET_S


def may_be_written_elsewhere(fd: int, path: Path) -> bool:
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
