"""Files and directories that only their owner may read: queued requests hold cookies and passwords."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
_OTHERS: Final = 0o077


def opener(path: str, flags: int) -> int:
    """For `open`: a file that is made is its owner's alone."""
    return os.open(path, flags, FILE_MODE)


def make_private_directory(path: str | os.PathLike[str]) -> None:
    """Make a directory and its missing parents, each for its owner alone; one that exists stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    try:
        os.mkdir(path, DIRECTORY_MODE)  # noqa: PTH102 - called often, and a Path costs as much as the call
    except FileNotFoundError:
        make_private_directory(os.path.dirname(path))  # noqa: PTH120 - as above
        make_private_directory(path)
    except FileExistsError:
        if not os.path.isdir(path):  # noqa: PTH112 - as above
            raise


def make_private(directory: Path) -> None:
    """Close a directory that exists to all but its owner, where it is ours to close."""
    with contextlib.suppress(OSError):
        mode = directory.stat().st_mode
        if mode & _OTHERS:
            directory.chmod(mode & ~_OTHERS)
