"""Makes files and directories that only their owner can read: queued requests hold cookies and passwords."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from typing import TYPE_CHECKING, BinaryIO, Final

from bigcrawl.exceptions import BigcrawlError, ConfigError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
_OTHERS: Final = 0o077
FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_PASSING: Final = FULL | {errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EMFILE, errno.ENFILE}


def opener(path: str, flags: int) -> int:
    """Create files that only their owner can read; an opener for `open`."""
    return os.open(path, flags, FILE_MODE)


def name_part() -> str:
    """Return a random part of a file name; process numbers are not unique on a shared disk."""
    return secrets.token_hex(8)


@contextlib.contextmanager
def whole_file(
    path: Path, mode: int = FILE_MODE, place: Callable[[Path, Path], object] = os.replace
) -> Iterator[BinaryIO]:
    """Yield a file that is synced and named after the block; an error leaves no file, and none is replaced."""
    part = path.with_name(f"{path.name}.{name_part()}.tmp")
    try:
        with open(part, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        place(part, path)
    finally:
        part.unlink(missing_ok=True)


def make_private_directory(path: str | os.PathLike[str]) -> None:
    try:
        os.mkdir(path, DIRECTORY_MODE)  # noqa: PTH102 - called often, and a Path costs as much as the call
    except FileNotFoundError:
        parent = os.path.dirname(path)  # noqa: PTH120 - as above
        if not os.path.isdir(parent or os.curdir):  # noqa: PTH112 - as above
            make_private_directory(parent)
        # In a directory such as /proc this raises; otherwise another process may have made it.
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, DIRECTORY_MODE)  # noqa: PTH102 - as above
    except FileExistsError:
        if not os.path.isdir(path):  # noqa: PTH112 - as above
            raise


def make_private(directory: Path) -> None:
    with contextlib.suppress(OSError):
        mode = directory.stat().st_mode
        if mode & _OTHERS:
            directory.chmod(mode & ~_OTHERS)


def replaced_error(directory: str | os.PathLike[str]) -> TransientStoreError:
    """Return the error for a directory that was replaced or unmounted while a node ran."""
    return TransientStoreError(
        f"{directory} is not the directory that this crawl has, or it is not mounted: mount it, or bring it back; the "
        f"crawl goes on by itself then"
    )


def disk_error(what: str, error: OSError, setting: str) -> BigcrawlError:
    """Return the error for a setting's directory; a TransientStoreError if the disk is full or unreachable."""
    if error.errno in _PASSING:
        remedy = "make room there" if error.errno in FULL else "check that it is mounted, and that its server answers"
        return TransientStoreError(f"{what}: {error}; {remedy}, or name another directory ({setting})")
    return ConfigError(f"{what}: {error}; check {setting}")
