"""Atomic file output: a file ends in ``.new`` until it is complete and durable."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEW_SUFFIX = ".new"


@contextmanager
def written_whole(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Yield a file to write to, which replaces `path` at the end. After an exception, `path` is unchanged."""
    files = OsFiles(mode)
    new = path.with_name(path.name + NEW_SUFFIX)
    files.remove(new)
    fd = files.create(new)
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            file.flush()
            files.sync(fd)
        files.rename(new, path)
    except BaseException:
        files.remove(new)
        raise
