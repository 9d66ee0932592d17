"""Finds captures of a URL in the CDXJ files of a directory, by bisection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, Final

from bigcrawl.page_index.cdxj import SUFFIX, Capture, read_line
from bigcrawl.page_index.search_key import search_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LINE_BYTES_MAX: Final = 1 << 20  # JSON may take six bytes per byte of a URL of 64 KiB


def find_captures(directory: Path, url: str, damaged: list[Path] | None = None) -> list[Capture]:
    """Return the captures of a URL's search key, oldest first; add unreadable files to `damaged`."""
    wanted = search_key(url.encode("utf-8", "surrogateescape")) + b" "
    found = []
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        try:
            with path.open("rb") as file:
                found += [read_line(line) for line in lines_from(file, wanted)]
        except (OSError, ValueError):
            if damaged is not None:
                damaged.append(path)
    return sorted(found, key=lambda capture: (capture.stamp, capture.filename, capture.offset))


def lines_from(file: BinaryIO, prefix: bytes) -> Iterator[bytes]:
    low, high = 0, os.fstat(file.fileno()).st_size
    while low < high:  # the first line not below the prefix begins in (low, high], or at 0
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(_LINE_BYTES_MAX)
        line = file.readline(_LINE_BYTES_MAX)
        if line and line < prefix:
            low = middle + 1
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline(_LINE_BYTES_MAX)
    while (line := file.readline(_LINE_BYTES_MAX)) and line < prefix:
        pass
    while line and line.startswith(prefix):
        yield line
        line = file.readline(_LINE_BYTES_MAX)
