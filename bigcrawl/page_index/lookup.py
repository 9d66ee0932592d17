"""Finds captures by URL, and URLs by key, in the CDXJ files of a directory."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final

from bigcrawl.page_index.cdxj import SUFFIX, Capture, read_line
from bigcrawl.page_index.index_files import CDXJ, PARQUET, SUFFIXES
from bigcrawl.page_index.search_key import search_key
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_LINE_BYTES_MAX: Final = 1 << 20  # JSON may take six bytes per byte of a URL of 64 KiB


def find_captures(directory: Path, url: str, damaged: list[Path] | None = None) -> list[Capture]:
    """Return the captures of URLs with this search key, oldest first; add unreadable files to `damaged`."""
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


WANTED_MAX: Final = 2_000_000
"""Keys whose URLs are looked for, some 200 MB; the others keep their keys alone."""


def urls_of(directory: Path | None, wanted: Iterable[int], key_of: Callable[[str], int]) -> dict[int, str]:
    """Return the URLs of the keys found in an index; CDXJ lines have no key, so their URLs count as GETs."""
    left = {key for key, _ in zip(wanted, range(WANTED_MAX), strict=False)}
    found: dict[int, str] = {}
    if directory is None or not directory.is_dir():
        return found
    for key, url in _indexed(directory, key_of):
        if key in left:
            found[key] = url
            left.remove(key)
            if not left:
                break
    return found


def _indexed(directory: Path, key_of: Callable[[str], int]) -> Iterator[tuple[int, str]]:
    lists = sorted(directory.glob(f"*{SUFFIXES[CDXJ]}"))
    for path in lists:
        with path.open("rb") as file:
            for line in file:
                with suppress(ValueError, LookupError):  # a damaged line, or what is no URL
                    url = read_line(line).url
                    yield key_of(canonicalize(url)), url
    tables = {path.name.removesuffix(SUFFIXES[PARQUET]): path for path in directory.glob(f"*{SUFFIXES[PARQUET]}")}
    for name in sorted(tables.keys() - {path.name.removesuffix(SUFFIXES[CDXJ]) for path in lists}):
        yield from _in_table(tables[name])


def _in_table(path: Path) -> Iterator[tuple[int, str]]:
    try:
        from pyarrow import parquet
    except ImportError:
        return
    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches(columns=["key", "url"]):
            keys, urls = (batch.column(name).to_pylist() for name in ("key", "url"))
            yield from ((int(key, 16), url) for key, url in zip(keys, urls, strict=True) if key)
