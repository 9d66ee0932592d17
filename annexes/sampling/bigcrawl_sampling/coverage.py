"""Finds which sampled pages are in a list of URLs, or in another crawl's index.

A line is a URL, a CDX or CDXJ line of an archive's index, or JSON with the field `url`, as `scrapy frontier export`
writes it. The file may be gzipped, and of any size: only the sampled URLs that occur in it are kept.
"""

from __future__ import annotations

import gzip
import zlib
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.text_files.reading import lines_of
from bigcrawl.url.canonical import canonicalize
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]

LINE_CHARS_MAX: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b"
_BATCH: Final = 10_000


class Listed(NamedTuple):
    """The wanted keys in a file, its number of URLs, and its number of lines without a URL."""

    keys: Keys
    urls: int
    skipped: int


def read_listed(path: Path, wanted: Keys) -> Listed:
    """Read a file; raise ConfigError if that fails."""
    found: list[Keys] = [np.empty(0, dtype=np.uint64)]
    urls = skipped = 0
    try:
        with path.open("rb") as plain, _unpacked(plain) as file:
            for lines in _batches(lines_of(file, LINE_CHARS_MAX)):
                read = [url for line in lines if (url := _canonical_url(line)) != ""]
                known = [url for url in read if url is not None]
                urls, skipped = urls + len(known), skipped + len(read) - len(known)
                found.append(np.intersect1d(wanted, PUBLIC_KEYS.of_urls(known)))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return Listed(np.unique(np.concatenate(found)), urls, skipped)


def _canonical_url(line: str) -> str | None:
    """Return the URL of a line; empty for a line to skip, None for a line without a URL."""
    if not line.strip() or line.startswith(("CDX ", "!", "#")):
        return ""
    try:
        begin = 0 if line.startswith("{") else line.find(" {") + 1
        if line.startswith("{") or begin:
            return canonicalize(read_json(line[begin:])["url"])
        fields = line.split()
        return canonicalize(fields[0] if "://" in fields[0] else fields[2])
    except (BigcrawlError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


def _unpacked(plain: IO[bytes]) -> IO[bytes]:
    is_packed = plain.read(len(_GZIP)) == _GZIP
    plain.seek(0)
    return gzip.GzipFile(fileobj=plain) if is_packed else plain  # type: ignore[return-value]
