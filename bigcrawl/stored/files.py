"""The WARC files that BIGCRAWL_SOURCE names."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.warc.files import OPEN_SUFFIX

WARC_SUFFIX: Final = ".warc.gz"
_GZIP: Final = b"\x1f\x8b"


def source_files(pattern: str) -> list[Path]:
    """Return the files that match a pattern, by name. If it is a directory, return the WARC files in it.

    Raises:
        ConfigError: there are none, or they are in a store, or one of them cannot be read or is not compressed.
    """
    if "://" in pattern:
        raise ConfigError(
            f"BIGCRAWL_SOURCE is {pattern}; it takes files of this machine: mount the store, or copy them here"
        )
    place = Path(pattern).expanduser()
    found = place.glob(f"*{WARC_SUFFIX}") if place.is_dir() else map(Path, glob.glob(str(place), recursive=True))  # noqa: PTH207 - pathlib has no absolute patterns
    paths = sorted((path for path in found if path.is_file()), key=lambda path: (path.name, str(path)))
    if not paths:
        raise ConfigError(f"BIGCRAWL_SOURCE is {pattern}, and no file is there{_hint(place)}")
    for path in paths:
        _check(path)
    return paths


def _hint(place: Path) -> str:
    """Return what may be wrong with a pattern that matches nothing."""
    parent = place if place.is_dir() else place.parent
    if parent.is_dir() and any(parent.glob(f"*{WARC_SUFFIX}{OPEN_SUFFIX}")):
        return f": files that end in {OPEN_SUFFIX} are still being written; let that crawl end, or start it once more"
    return f": name WARC files, as warc/*{WARC_SUFFIX}; a relative pattern begins in {Path.cwd()}"


def _check(path: Path) -> None:
    if not os.access(path, os.R_OK):
        raise ConfigError(f"BIGCRAWL_SOURCE names {path}, which this user may not read")
    with path.open("rb") as file:
        begin = file.read(len(_GZIP))
    if begin and begin != _GZIP:
        raise ConfigError(
            f"BIGCRAWL_SOURCE names {path}, which is not gzip; WARC files must have one gzip member per record"
        )
