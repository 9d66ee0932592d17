from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from bigcrawl.exceptions import ConfigError
from bigcrawl.warc.files import OPEN_SUFFIX, READ_SUFFIXES, WARC_SUFFIX
from bigcrawl.warc.heads import HEAD_BYTES_MAX, find_starts
from bigcrawl.warc.members import packing_of


def source_files(pattern: str, option: str = "BIGCRAWL_SOURCE") -> list[Path]:
    """Return the sorted WARC files that match a pattern or are in a directory; raise ConfigError if unusable."""
    if "://" in pattern:
        raise ConfigError(f"{option} is {pattern}; it takes files of this machine: mount the store, or copy them here")
    place = Path(pattern).expanduser()
    if place.is_dir():
        found = [path for path in place.iterdir() if path.name.endswith(READ_SUFFIXES)]
    else:
        found = [Path(name) for name in glob.glob(str(place), recursive=True)]  # noqa: PTH207 - pathlib has no absolute patterns
    paths = sorted((path for path in found if path.is_file()), key=lambda path: (path.name, str(path)))
    if not paths:
        raise ConfigError(f"{option} is {pattern}, but there is no such file{_pattern_hint(place)}")
    for path in paths:
        _check_file(path, option)
    return paths


def _pattern_hint(place: Path) -> str:
    parent = place if place.is_dir() else place.parent
    if parent.is_dir() and any(parent.glob(f"*{WARC_SUFFIX}{OPEN_SUFFIX}")):
        return f": files that end in {OPEN_SUFFIX} are still being written; let that crawl end, or start it once more"
    return f": name WARC files, as warc/*{WARC_SUFFIX}; a relative pattern begins in {Path.cwd()}"


def _check_file(path: Path, option: str) -> None:
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{option} names {path}, for which this user has no read permission")
    mark = packing_of(path).mark
    with path.open("rb") as file:
        begin = file.read(HEAD_BYTES_MAX)
    if begin and not (re.search(mark, begin, re.DOTALL) if mark else next(find_starts(begin), None)):
        raise ConfigError(f"{option} names {path}, which is not a WARC or ARC file")
