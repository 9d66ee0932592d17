"""An index of stored answers by URL, and the order in which they were fetched.

It is made from the indexes (CDXJ) of WARC files, or from files without one. It takes 45 bytes of memory per page,
because URLs are hashed, and 12 more if there are copies, because a copy may name only the digest of its original.

If a URL has several answers, the last one is its page. A 304 does not count, because it confirms the answer before it.
A ``revisit`` counts, because only its record says which answer it confirms. Pages of one node are in the order in which
it wrote them; those of several nodes are merged by time.
"""

from __future__ import annotations

import logging
import os
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.page_index.cdxj import REVISIT, digest_of, read_line, stamp_of
from bigcrawl.page_index.index_files import index_path
from bigcrawl.page_index.page_records import page_records
from bigcrawl.url.canonical import UrlError, canonicalize, host_of
from bigcrawl.url.header import text_of
from bigcrawl.url.key import SECRET_BYTES, Keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.url.key import KeyArray

    Ranks = npt.NDArray[np.int64]

logger = logging.getLogger(__name__)

SKIPS_MAX: Final = 1_000
"""How many skipped records of a file to keep for `explain`."""
URL_BYTES_MAX: Final = 1 << 20
ROBOTS_PATH: Final = "/robots.txt"
_NOT_MODIFIED: Final = 304
_SKIPPED_URL_CHARS: Final = 2_000
_STAMP_DIGITS: Final = 14
_SIZE_MAX: Final = (1 << 32) - 1
_OFFSET_MAX: Final = (1 << 62) - 1
_COPY, _IS_ROBOTS, _UNUSABLE = 1, 2, 4


class StoredPlace(NamedTuple):
    """The place of a stored answer; `offset` and `size` are those of the record's gzip member."""

    path: Path
    offset: int
    size: int
    is_copy: bool


class SkippedPage(NamedTuple):
    url: str
    path: Path
    offset: int
    why: str


class _CaptureRow(NamedTuple):
    url: str
    stamp: str
    offset: int
    size: int
    status: int
    is_copy: bool
    digest: str


class _FileCaptures(NamedTuple):
    """The captures of one file, by offset; `times` never decrease."""

    marks: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint8]
    digests: npt.NDArray[np.int64]
    hosts: npt.NDArray[np.uint64]
    skipped: int
    skips: list[SkippedPage]


class PageCatalogue:
    """The stored pages. A page's *rank* is its position in the order, from 0.

    `captures` counts all stored answers; `skipped` counts records that are not answers of a crawlable URL, of which
    `skips` has the first of each file. Hosts are known if it was read with them.
    """

    def __init__(self, paths: list[Path], parts: list[_FileCaptures], keys: Keys) -> None:
        self.keys = keys
        self._paths = paths
        files = np.repeat(np.arange(len(parts), dtype=np.uint32), [len(part.marks) for part in parts])
        self.skipped = sum(part.skipped for part in parts)
        self.skips = [skip for part in parts for skip in part.skips]
        columns = zip(*(part[:-3] for part in parts), strict=True)
        marks, times, offsets, sizes, flags, digests = map(np.concatenate, columns)
        order = np.lexsort((offsets, files, times, marks))
        marks, times = marks[order], times[order]
        self._files, self._offsets, self._sizes, self._flags = (a[order] for a in (files, offsets, sizes, flags))
        self._times = times
        self.captures = len(marks)
        originals = np.flatnonzero(self._flags & _COPY == 0) if (self._flags & _COPY).any() else np.array([], np.int64)
        digests = digests[order][originals]
        by_digest = np.argsort(digests, kind="stable")
        self._digests, self._by_digest = digests[by_digest], originals[by_digest].astype(np.uint32)
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
        hosts = np.concatenate([part.hosts for part in parts])
        self._hosts, first = np.unique(hosts[:, 0], return_index=True)
        self._host_urls = hosts[first, 1]

    def __len__(self) -> int:
        return len(self._by_rank)

    def ranks_of(self, canonicals: Collection[str]) -> Ranks:
        if not len(self):
            return np.full(len(canonicals), -1, np.int64)
        urls = self._urls_of(self.keys.marks_of(canonicals))
        return np.where(urls < 0, -1, self._rank_of[urls]).astype(np.int64)

    def rank_of(self, canonical: str) -> int:
        return int(self.ranks_of((canonical,))[0])

    def place_of_rank(self, rank: int) -> StoredPlace:
        return self._place_of_capture(int(self._by_rank[rank]))

    def answers(self, canonical: str, near: str = "") -> Iterator[StoredPlace]:
        """Yield all stored answers of a URL, of any kind and status, the last one first.

        Given a time `near`, in digits as in an index, the first answer from then on comes first, then its neighbours.
        """
        url = int(self._urls_of(self.keys.marks_of((canonical,)))[0])
        if url < 0:
            return
        begin, end = self._range_of(url)
        middle = begin + int(np.searchsorted(self._times[begin:end], _time_of(near))) if near else end
        for pair in zip_longest(range(middle, end), range(middle - 1, begin - 1, -1)):
            yield from (self._place_of_capture(capture) for capture in pair if capture is not None)

    def earlier_answers(self, canonical: str, stamp: str) -> Iterator[StoredPlace]:
        url = int(self._urls_of(self.keys.marks_of((canonical,)))[0])
        if url >= 0:
            begin, end = self._range_of(url)
            end = begin + int(np.searchsorted(self._times[begin:end], _time_of(stamp), side="right"))
            yield from map(self._place_of_capture, range(end - 1, begin - 1, -1))

    def answers_of_digest(self, digest: str) -> Iterator[StoredPlace]:
        """Yield the stored answers, except copies, whose payload may have this digest (spelled as in an index)."""
        begin, end = (int(np.searchsorted(self._digests, hash(digest), side=side)) for side in ("left", "right"))
        yield from (self._place_of_capture(int(capture)) for capture in self._by_digest[begin:end])

    def one_place_per_host(self) -> Iterator[StoredPlace]:
        return map(self._place_of, self._host_urls)

    def place_of_host(self, host: str) -> StoredPlace | None:
        """Return the place of a stored answer of a host, always the same one; None if there is none."""
        mark = self.keys.mark_of(host)
        at = int(np.searchsorted(self._hosts, np.uint64(mark)))
        if at == len(self._hosts) or int(self._hosts[at]) != mark:
            return None
        return self._place_of(self._host_urls[at])

    def pages_but_robots(self) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.equal(self._flags[self._by_rank] & _IS_ROBOTS, 0)
        return found

    def _range_of(self, url: int) -> tuple[int, int]:
        return int(self._starts[url]), int(self._starts[url + 1]) if url + 1 < len(self._starts) else self.captures

    def _place_of(self, mark: np.uint64) -> StoredPlace:
        return self._place_of_capture(int(self._starts[int(np.searchsorted(self._marks, mark))]))

    def _urls_of(self, marks: KeyArray) -> Ranks:
        if not len(self._marks):
            return np.full(len(marks), -1, np.int64)
        at = np.minimum(np.searchsorted(self._marks, marks), len(self._marks) - 1)
        return np.where(self._marks[at] == marks, at, -1).astype(np.int64)

    def _place_of_capture(self, capture: int) -> StoredPlace:
        is_copy = bool(self._flags[capture] & _COPY)
        path = self._paths[int(self._files[capture])]
        return StoredPlace(path, int(self._offsets[capture]), int(self._sizes[capture]), is_copy)


def read_catalogue(paths: list[Path], until: str = "", *, has_hosts: bool = False) -> PageCatalogue:
    """Read the indexes of WARC files, and the files that have none.

    Captures of the same time are in the order of `paths`. Those later than `until`, digits of a time, are left out.
    Raises ConfigError if a file is unreadable.

    Cost: 11 us per page; 160 us in a file without index. `has_hosts`: 16 bytes of memory per host.
    """
    keys = Keys(os.urandom(SECRET_BYTES))
    return PageCatalogue(paths, [_read_captures(path, until, keys, has_hosts) for path in paths], keys)


def _read_captures(path: Path, until: str, keys: Keys, has_hosts: bool) -> _FileCaptures:
    try:
        rows = _read_index(path)
        return _pack_rows(path, _read_records(path) if rows is None else rows, until, keys, has_hosts)
    except OSError as error:
        raise ConfigError(f"stored pages: {path} cannot be read: {error.strerror}") from error


def _read_index(path: Path) -> list[_CaptureRow] | None:
    index = index_path(path)
    if not index.exists():
        return None
    rows = []
    try:
        with index.open("rb") as lines:
            for line in lines:
                one = read_line(line)
                is_copy = one.mime == REVISIT
                rows.append(_CaptureRow(one.url, one.stamp, one.offset, one.size, one.status, is_copy, one.digest))
    except ValueError as error:
        logger.warning(
            "%(index)s is damaged, and its file is read instead: %(error)s; scrapy frontier warc index makes it again",
            {"index": index, "error": error},
        )
        return None
    return rows


def _read_records(path: Path) -> Iterator[_CaptureRow]:
    logger.info("%(path)s has no index and is read: scrapy frontier warc index makes one", {"path": path})
    try:
        for page in page_records(path):
            url = text_of(page.fields[b"warc-target-uri"].strip(b"<>"))
            stamp = stamp_of(page.fields.get(b"warc-date", b""))
            is_copy = page.kind == b"revisit"
            status = 0 if is_copy else page.status
            yield _CaptureRow(url, stamp, page.offset, page.size, status, is_copy, digest_of(page.fields))
    except CorruptionError as error:
        logger.error("%(error)s; all other pages are read", {"error": error})  # noqa: TRY400 - one line


def _time_of(stamp: str) -> int:
    digits = stamp[:_STAMP_DIGITS]
    return int(digits.ljust(_STAMP_DIGITS, "0")) if digits.isascii() and digits.isdigit() else 0


def _pack_rows(path: Path, rows: Iterable[_CaptureRow], until: str, keys: Keys, has_hosts: bool) -> _FileCaptures:
    urls, stamps, offsets, sizes, flags, digests = [], [], [], [], [], []
    skipped = 0
    skips: list[SkippedPage] = []
    for row in rows:
        problem = ""
        if not 0 < row.size <= _SIZE_MAX or not 0 <= row.offset <= _OFFSET_MAX:
            problem = f"its index has {row.offset} as its first byte, and {row.size} bytes"
        else:
            try:
                urls.append(canonicalize(row.url, URL_BYTES_MAX))
            except UrlError as error:
                problem = str(error)
        if problem:
            skipped += 1
            if len(skips) < SKIPS_MAX:
                skips.append(SkippedPage(row.url[:_SKIPPED_URL_CHARS], path, row.offset, problem))
            continue
        stamp = row.stamp[:_STAMP_DIGITS]
        stamps.append(_time_of(stamp))
        offsets.append(row.offset)
        sizes.append(row.size)
        digests.append(hash(row.digest))
        is_late = bool(until) and stamp[: len(until)] > until
        flags.append(
            _COPY * row.is_copy
            | _IS_ROBOTS * urls[-1].endswith(ROBOTS_PATH)
            | _UNUSABLE * (is_late or row.status == _NOT_MODIFIED)
        )
    if skipped:
        logger.warning(
            "%(path)s has %(skipped)d records that are not answers of a crawlable URL, such as %(url)s: "
            "%(why)s; `scrapy frontier explain URL` says which",
            {"path": path, "skipped": skipped, "url": skips[0].url[:200], "why": skips[0].why},
        )
    offsets_of = np.array(offsets, np.uint64)
    order = np.argsort(offsets_of, kind="stable")
    times = np.array(stamps, np.int64)[order]
    marks = keys.marks_of(urls)
    return _FileCaptures(
        marks[order],
        np.maximum.accumulate(times) if len(times) else times,
        offsets_of[order],
        np.array(sizes, np.uint32)[order],
        np.array(flags, np.uint8)[order],
        np.array(digests, np.int64)[order],
        _host_marks(urls, marks, keys) if has_hosts else np.empty((0, 2), np.uint64),
        skipped,
        skips,
    )


def _host_marks(urls: list[str], marks: KeyArray, keys: Keys) -> npt.NDArray[np.uint64]:
    """Return the mark of each host, and of one URL of the host."""
    hosts, first = np.unique(keys.marks_of(list(map(host_of, urls))), return_index=True)
    return np.column_stack((hosts, marks[first]))
