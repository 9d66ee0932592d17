"""Tells whether the writer of an ``.open`` file may live on another machine, where its lock is not seen from here.

A lock is seen for certain by processes of the same kernel. Between machines it depends on the mount: NFS with
``nolock``, or the server's own view of a directory that it exports, shows a file as free while it is written. So a free
lock proves that the writer is dead only if the file says, in its first record, that it was begun by this kernel. Any
other file must also have been quiet for `QUIET_S`, ten times as long as a living writer ever is: it touches its file
every `BEAT_S`. The file system's own clock counts, because those of machines differ.

An empty file may be one that its writer is about to lock. Whoever locked it first would take it from that writer, so
it too must have been quiet.

A writer that stood still for so long, with its machine, finds that its file has lost its name, and begins another.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Final

from bigcrawl.clock import boot_id
from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.record_heads import head_fields, record_heads

if TYPE_CHECKING:
    from pathlib import Path

BEAT_S: Final = 60.0
QUIET_S: Final = 600.0
BOOT_FIELD: Final = "bootId"  # of warcinfo records


def is_being_begun(fd: int, path: Path) -> bool:
    """Whether a writer may have made the file just now, and not locked it yet; do not lock it then.

    Args and errors as those of `may_be_written_elsewhere`.
    """
    return os.fstat(fd).st_size == 0 and _quiet_s(fd, path.parent) < QUIET_S


def may_be_written_elsewhere(fd: int, path: Path) -> bool:
    """Whether a file whose lock is free may have a living writer on another machine.

    Args:
        fd: of the file; opened just now, so that NFS knows its present state.
        path: its name.

    Raises:
        OSError: the file or its directory cannot be read, or there is no room to ask for the time.

    Cost: reads the first record; if that is not of this kernel, makes a file without a name.
    """
    return not _is_begun_here(path) and _quiet_s(fd, path.parent) < QUIET_S


def _is_begun_here(path: Path) -> bool:
    try:
        first = next(record_heads(path), None)
    except CorruptionError:  # cut within its first record
        return False
    boot = boot_id()
    return (
        first is not None and boot != "" and head_fields(first.block).get(BOOT_FIELD.lower().encode()) == boot.encode()
    )


def _quiet_s(fd: int, directory: Path) -> float:
    """Return for how long a file has not been changed, by the clock of its file system."""
    with tempfile.TemporaryFile(dir=directory) as made_now:
        return os.fstat(made_now.fileno()).st_mtime - os.fstat(fd).st_mtime
