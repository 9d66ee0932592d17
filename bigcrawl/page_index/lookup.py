"""Finds captures of a URL in the CDXJ files of a directory, by bisection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, Final

from bigcrawl.page_index.cdxj import SUFFIX, Capture, read_line
from bigcrawl.page_index.search_key import search_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LINE_BYTES_MAX: Final = 1 << 20  # a URL has 64 KiB at most, and JSON may take six bytes for one


def captures(directory: Path, url: str, damaged: list[Path] | None = None) -> list[Capture]:
    """Return the captures whose search key is that of the URL, the oldest first.

    Args:
        directory: of the CDXJ files.
        url: in any spelling.
        damaged: receives the files that were found to be unreadable or no CDXJ; they are skipped.

    Cost: some 20 reads of a few hundred bytes in each file.
    """
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
    """Yield the lines of a sorted file that begin with a prefix."""
    low, high = 0, os.fstat(file.fileno()).st_size
    while low < high:  # the first line that is not less than the prefix begins in (low, high], or at 0
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
        pass  # at most the first line of the file
    while line and line.startswith(prefix):
        yield line
        line = file.readline(_LINE_BYTES_MAX)
