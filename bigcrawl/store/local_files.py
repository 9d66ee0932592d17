"""Writes files into a store that is a directory; with fsspec, half-written files would be visible."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from bigcrawl.private_files import FILE_MODE, name_part, opener

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TEMPORARY: Final = ".tmp-"


def write_whole(path: Path, pieces: Iterable[bytes], mode: int = FILE_MODE) -> None:
    """Write a file under a temporary name, syncing piece by piece, as one sync may take long; then rename it."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}{name_part()}")
    try:
        with open(temporary, "wb", opener=opener) as file:
            for number, piece in enumerate(pieces):
                if number:
                    os.fsync(file.fileno())
                file.write(piece)
                file.flush()
            if mode != FILE_MODE:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
