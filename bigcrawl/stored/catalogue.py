"""Where the stored answers of each URL are, and in which order the last ones were fetched.

It is made from the indexes (CDXJ) of WARC files; a file without one is read itself. Arrays hold it: 45 bytes a page,
whatever the length of URLs, which are known by 64-bit marks of this process.

If a URL has several answers, the last one is its page. A 304 does not count, because it confirms the answer before it.
The pages of one node are in the order in which it wrote them: when the fetch had ended, and before the spider got the
page. Pages of several nodes are merged by time.
"""

from __future__ import annotations

import logging
import os
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.page_index.cdxj import REVISIT, decoded, read_line
from bigcrawl.page_index.index_files import index_path
from bigcrawl.page_index.page_records import page_records
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import text_of
from bigcrawl.url.key import SECRET_BYTES, Keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.url.key import KeyArray

    Ranks = npt.NDArray[np.int64]

logger = logging.getLogger(__name__)

URL_BYTES_MAX: Final = 1 << 20  # of a stored URL; what was fetched was short enough
ROBOTS_PATH: Final = "/robots.txt"
_NOT_MODIFIED: Final = 304
_STAMP_DIGITS: Final = 14
_SIZE_MAX: Final = (1 << 32) - 1
_COPY, _IS_ROBOTS, _UNUSABLE = 1, 2, 4  # flags of a capture


class Place(NamedTuple):
    """Where a capture is stored.

    Attributes:
        path: its file.
        offset: of the gzip member of its record.
        size: bytes of the member.
        is_copy: whether it refers to another capture for its body.
    """

    path: Path
    offset: int
    size: int
    is_copy: bool


class _Row(NamedTuple):
    url: str
    stamp: str
    offset: int
    size: int
    status: int
    is_copy: bool


class _Part(NamedTuple):
    """The captures of one file, by offset. `times` never decrease: they say when each page was written."""

    marks: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint8]


class Catalogue:
    """The stored pages. A page's *rank* is its place in the order, from 0 on.

    Attributes:
        keys: make the marks of URLs.
        captures: how many answers are stored, including those that are not the last of their URL.
    """

    def __init__(self, paths: list[Path], parts: list[_Part], keys: Keys) -> None:
        self.keys = keys
        self._paths = paths
        files = np.repeat(np.arange(len(parts), dtype=np.uint32), [len(part.marks) for part in parts])
        marks, times, offsets, sizes, flags = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((offsets, files, times, marks))
        marks, times = marks[order], times[order]
        self._files, self._offsets, self._sizes, self._flags = (a[order] for a in (files, offsets, sizes, flags))
        self._times = times
        self.captures = len(marks)
        self._starts = np.flatnonzero(np.concatenate(([True], marks[1:] != marks[:-1]))[: len(marks)])
        self._marks = marks[self._starts]
        usable = np.where(self._flags & _UNUSABLE, -1, np.arange(len(marks)))
        chosen = np.maximum.reduceat(usable, self._starts) if len(marks) else usable
        urls = np.flatnonzero(chosen >= 0)
        chosen = chosen[urls]
        in_order = np.lexsort((self._offsets[chosen], self._files[chosen], times[chosen]))
        self._by_rank = chosen[in_order].astype(np.uint32)
        self._rank_of = np.full(len(self._marks), -1, np.int32)
        self._rank_of[urls[in_order]] = np.arange(len(in_order))
        self._starts = self._starts.astype(np.uint32)

    def __repr__(self) -> str:
        return f"<Catalogue {len(self)} pages of {len(self._paths)} files>"

    def __len__(self) -> int:
        return len(self._by_rank)

    def ranks(self, canonicals: Collection[str]) -> Ranks:
        """Return the ranks of the pages of canonical URLs, -1 where none is stored. Cost: 0.5 us each."""
        if not len(self):
            return np.full(len(canonicals), -1, np.int64)
        urls = self._urls_of(self.keys.marks_of(canonicals))
        return np.where(urls < 0, -1, self._rank_of[urls]).astype(np.int64)

    def rank(self, canonical: str) -> int:
        """Return the rank of one URL's page; -1: it is not stored."""
        return int(self.ranks((canonical,))[0])

    def place(self, rank: int) -> Place:
        """Return where a page is."""
        return self._place(int(self._by_rank[rank]))

    def answers(self, canonical: str, near: str = "") -> Iterator[Place]:
        """Yield all stored answers of a URL, of any kind and status: the last one first, or those near a time.

        Args:
            canonical: the URL.
            near: a time in digits, as in an index. The first answer written since then comes first, then its
                neighbours.
        """
        url = int(self._urls_of(self.keys.marks_of((canonical,)))[0])
        if url < 0:
            return
        end = int(self._starts[url + 1]) if url + 1 < len(self._starts) else self.captures
        begin = int(self._starts[url])
        middle = begin + int(np.searchsorted(self._times[begin:end], _time_of(near))) if near else end
        for pair in zip_longest(range(middle, end), range(middle - 1, begin - 1, -1)):
            yield from (self._place(capture) for capture in pair if capture is not None)

    def pages_but_robots(self) -> npt.NDArray[np.bool_]:
        """Return which pages are not a robots.txt, by rank."""
        found: npt.NDArray[np.bool_] = np.equal(self._flags[self._by_rank] & _IS_ROBOTS, 0)
        return found

    def _urls_of(self, marks: KeyArray) -> Ranks:
        if not len(self._marks):
            return np.full(len(marks), -1, np.int64)
        at = np.minimum(np.searchsorted(self._marks, marks), len(self._marks) - 1)
        return np.where(self._marks[at] == marks, at, -1).astype(np.int64)

    def _place(self, capture: int) -> Place:
        is_copy = bool(self._flags[capture] & _COPY)
        path = self._paths[int(self._files[capture])]
        return Place(path, int(self._offsets[capture]), int(self._sizes[capture]), is_copy)


def read_catalogue(paths: list[Path], until: str = "") -> Catalogue:
    """Read the indexes of WARC files, and the files that have none.

    Args:
        paths: of the files, at least one. Captures of the same time are in the order of their files.
        until: digits of a time; later captures are left out. Empty: none are.

    Raises:
        ConfigError: a file cannot be read.

    Cost: 11 us a page; 160 us of a file without index. 45 bytes a page, and up to 100 meanwhile.
    """
    keys = Keys(os.urandom(SECRET_BYTES))
    return Catalogue(paths, [_part(path, until, keys) for path in paths], keys)


def _part(path: Path, until: str, keys: Keys) -> _Part:
    try:
        rows = _indexed(path)
        return _packed(rows, until, keys) if rows is not None else _packed(_read(path), until, keys)
    except OSError as error:
        raise ConfigError(f"BIGCRAWL_SOURCE: {path} cannot be read: {error.strerror}") from error


def _indexed(path: Path) -> list[_Row] | None:
    """Return what the index of a file says; None if there is none, or none that can be used."""
    index = index_path(path)
    if not index.exists():
        return None
    rows = []
    try:
        with index.open("rb") as lines:
            for line in lines:
                one = read_line(line)
                rows.append(_Row(one.url, one.stamp, one.offset, one.size, one.status, one.mime == REVISIT))
    except ValueError as error:
        logger.warning(
            "%(index)s is damaged, and its file is read instead: %(error)s; scrapy frontier warc index makes it anew",
            {"index": index, "error": error},
        )
        return None
    return rows


def _read(path: Path) -> Iterator[_Row]:
    logger.info("%(path)s has no index and is read: scrapy frontier warc index makes one", {"path": path})
    try:
        for page in page_records(path):
            url = text_of(page.fields[b"warc-target-uri"].strip(b"<>"))
            stamp = stamp_of(page.fields.get(b"warc-date", b""))
            yield _Row(url, stamp, page.offset, page.size, page.status, page.kind == b"revisit")
    except CorruptionError as error:
        logger.error(  # noqa: TRY400 - one line
            "%(error)s; the pages before the damage are read. scrapy frontier warc verify says more", {"error": error}
        )


def stamp_of(date: bytes) -> str:
    """Return the digits of a WARC-Date, as they stand in an index."""
    return "".join(filter(str.isdigit, decoded(date)))


def _time_of(stamp: str) -> int:
    digits = stamp[:_STAMP_DIGITS]
    return int(digits.ljust(_STAMP_DIGITS, "0")) if digits.isdigit() else 0


def _packed(rows: Iterable[_Row], until: str, keys: Keys) -> _Part:
    urls, stamps, offsets, sizes, flags = [], [], [], [], []
    for row in rows:
        if not 0 < row.size <= _SIZE_MAX or row.offset < 0:
            continue
        try:
            urls.append(canonicalize(row.url, URL_BYTES_MAX))
        except UrlError:
            continue
        stamp = row.stamp[:_STAMP_DIGITS]
        stamps.append(_time_of(stamp))
        offsets.append(row.offset)
        sizes.append(row.size)
        is_late = bool(until) and stamp[: len(until)] > until
        flags.append(
            _COPY * row.is_copy
            | _IS_ROBOTS * urls[-1].endswith(ROBOTS_PATH)
            | _UNUSABLE * (is_late or row.status == _NOT_MODIFIED)
        )
    offsets_of = np.array(offsets, np.uint64)
    order = np.argsort(offsets_of, kind="stable")
    times = np.array(stamps, np.int64)[order]
    return _Part(
        keys.marks_of(urls)[order],
        np.maximum.accumulate(times) if len(times) else times,
        offsets_of[order],
        np.array(sizes, np.uint32)[order],
        np.array(flags, np.uint8)[order],
    )
