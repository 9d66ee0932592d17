"""A crawl's WARC pipeline whose disk thread works in steps, and what must be true after a power cut and a restart."""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy import Request, Spider
from scrapy.http import TextResponse
from scrapy.utils.test import get_crawler

from bigcrawl.clock import ManualClock
from bigcrawl.page_index.cdxj import read_line
from bigcrawl.page_index.index_files import index_file, index_path, remove_indexes, unindexed_files
from bigcrawl.pipelines import page_writes, warc
from bigcrawl.pipelines.warc import WarcPipeline
from bigcrawl.warc.files import OPEN_SUFFIX
from bigcrawl.warc.group_commit import GroupCommit
from bigcrawl.warc.recovery import DAMAGED_SUFFIX, recover_directory
from bigcrawl.warc.segments import SealingOptions
from tests.unit.warc.elsewhere import grow_old
from tests.unit.warc.medium import Medium, contents_of, lay_out
from tests.unit.warc.reading import gzip_members, parse_record, read_checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

KINDS: Final = ("cdxj",)
BODIES: Final = tuple(b"%0600d" % number for number in range(3))
_PAGES: Final = frozenset(("response", "revisit"))


class _Steps(GroupCommit):
    """Works when it is told to, in the caller's thread."""

    def _start_or_wake(self) -> None:
        pass

    def step(self) -> None:
        self._do_all()


class _Indexer:
    """Makes the index of a file as soon as it is sealed, on the same disk."""

    def __init__(self, files: Medium) -> None:
        self._files = files

    def add_file(self, path: Path) -> None:
        with contextlib.suppress(OSError):  # the next start makes it
            index_file(path, KINDS, files=self._files)


class Item(NamedTuple):
    """What was given to the pipeline, in the order in which it counts it."""

    kind: str
    number: int


class PageDisk:
    """A pipeline of a crawl on the frontier, in a directory that may have files of an earlier run.

    Args:
        patch: puts the steps in the place of threads and timers.
        directory: of the WARC files.
        bytes_max: size of a file.
        first: number of the next page.
    """

    def __init__(self, patch: pytest.MonkeyPatch, directory: Path, bytes_max: int, first: int = 0) -> None:
        self.medium: Medium = Medium(contents_of(directory))
        patch.setattr(warc, "GroupCommit", _Steps)
        patch.setattr(warc, "PageIndexer", lambda *_: _Indexer(self.medium))
        patch.setattr(warc, "SealingOptions", partial(SealingOptions, bytes_max))
        patch.setattr(page_writes, "call_later", self._call_later)
        crawler = get_crawler(Spider, {"BIGCRAWL_WARC_DIR": str(directory), "BIGCRAWL_WARC_COPIES": "by-reference"})
        crawler.engine = SimpleNamespace(paused=False, pause=_nothing, unpause=_nothing)  # type: ignore[assignment]
        clock = ManualClock(1_700_000_000_000 + first)
        self.pipeline = WarcPipeline(crawler, directory, clock, files=self.medium)
        self._parts: Any = self.pipeline  # what a test may do with a pipeline that nobody else may
        self._parts._disk.sync_every(0.1)
        self.items: list[Item] = []
        self.marks: list[tuple[int, int]] = []  # of the journal: its length, and how many items were safe by then
        self._timer: Callable[[], None] | None = None
        self._number = first
        self._last: tuple[Request, int] | None = None

    def page(self, body: int) -> bool:
        """Store a page with one of the bodies. Return whether its file has room for more."""
        number, self._number = self._number, self._number + 1
        url = f"http://a.example/{number}"
        request = Request(url)
        self._last = request, number
        self.items.append(Item("page", number))
        self.pipeline.response_downloaded(TextResponse(url, body=BODIES[body % len(BODIES)]), request)
        self._mark()
        return self._parts._writer.open_path is not None

    def note(self) -> None:
        """Store a note on the last page, if there is one."""
        if self._last is not None:
            request, number = self._last
            self.items.append(Item("note", number))
            self.pipeline.record_page(request, {"robots": "noarchive"})
            self._mark()

    def step(self) -> None:
        """Let the disk's thread do what is due."""
        self._parts._disk.step()
        self._mark()

    def look(self) -> None:
        """Look at the disk as the frontier does before each fetch, and let a timer that is set end."""
        self.pipeline.writes.is_flushed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer()
        self._mark()

    def close(self) -> None:
        """End the crawl."""
        self._parts._disk.submit(self._parts._writer.close)
        self.step()

    @property
    def next_number(self) -> int:
        return self._number

    @property
    def safe(self) -> int:
        return self.pipeline.writes.safe_pages

    def _mark(self) -> None:
        assert self.pipeline.writes.pages == len(self.items)
        self.marks.append((len(self.medium.journal), self.safe))

    def _call_later(self, _: float, act: Callable[[], None]) -> Any:
        self._timer = act
        return SimpleNamespace(cancel=self._cancel)

    def _cancel(self) -> None:
        self._timer = None


class Stored(NamedTuple):
    """What is in a directory after a restart.

    Attributes:
        items: pages and notes that can be read.
        dangling: records that are referred to and are not there.
    """

    items: frozenset[Item]
    dangling: frozenset[str]


class Restarts:
    """Starts on what a power cut left; each content once, since many cuts leave the same.

    Args:
        work: a directory for theirs.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        self._known: dict[bytes, Stored] = {}

    def __len__(self) -> int:
        return len(self._known)

    def stored(self, contents: dict[str, bytes]) -> Stored:
        """Restart, check what must be true whatever was cut, restart again, and return what is stored."""
        digest = _digest(contents)
        if digest not in self._known:
            directory = self._work / str(len(self._known))
            lay_out(directory, contents)
            restart(directory)
            self._known[digest] = checked(directory)
            once = contents_of(directory)
            restart(directory)
            assert contents_of(directory) == once, "a second restart changes nothing"
        return self._known[digest]

    def is_known(self, contents: dict[str, bytes]) -> bool:
        return _digest(contents) in self._known


def restart(directory: Path, files: Medium | None = None) -> None:
    """Do what a pipeline does some time after it starts: close files of writers that died, index what has no index.

    At once it closes those whose first record is whole; the others might be of another machine.
    """
    for path in directory.glob(f"*{OPEN_SUFFIX}"):
        grow_old(path)
    recover_directory(directory, remove_indexes=lambda path: remove_indexes(path, files), files=files)
    for path in unindexed_files(directory, KINDS):
        index_file(path, KINDS, files=files)


def checked(directory: Path) -> Stored:
    """Check that each file is sound and its index is the file's; return what is in them."""
    names = {path.name for path in directory.iterdir()}
    files = sorted(directory.glob("*.warc.gz"))
    expected = {path.name for path in files} | {index_path(path).name for path in files}
    assert {name for name in names if DAMAGED_SUFFIX not in name} == expected
    items: set[Item] = set()
    ids: set[str] = set()
    referred: set[str] = set()
    number_of: dict[str, int] = {}
    for path in files:
        records = read_checked(path)
        for record in records:
            head, number = record.headers, int(record.headers.get("WARC-Target-URI", "/0").rpartition("/")[2])
            if record.type in _PAGES:
                items.add(Item("page", number))
                number_of[head["WARC-Record-ID"]] = number
            if record.type == "response":
                ids.add(head["WARC-Record-ID"])
            elif record.type == "revisit":
                referred.add(head["WARC-Refers-To"])
            elif record.type == "metadata" and b"robots: noarchive" in record.block:
                items.add(Item("note", number))
        lines = [read_line(line) for line in index_path(path).read_bytes().splitlines(keepends=True)]
        assert sorted((line.offset, line.size, line.url) for line in lines) == captures_in(path)
    return Stored(frozenset(items), frozenset(referred - ids))


def captures_in(path: Path) -> list[tuple[int, int, str]]:
    """Offset, size and URL of each page of a file, found without its index."""
    data, found, offset = path.read_bytes(), [], 0
    for member in gzip_members(data):
        record = parse_record(member)
        size = _member_size(data, offset)
        if record.type in _PAGES:
            found.append((offset, size, record.headers["WARC-Target-URI"]))
        offset += size
    return found


def _member_size(data: bytes, offset: int) -> int:
    unpacker = zlib.decompressobj(31)
    unpacker.decompress(data[offset:])
    return len(data) - offset - len(unpacker.unused_data)


def _digest(contents: dict[str, bytes]) -> bytes:
    whole = hashlib.sha256()
    for name, data in sorted(contents.items()):
        whole.update(b"%s %d\n" % (name.encode(), len(data)))
        whole.update(data)
    return whole.digest()


def _nothing() -> None:
    """Do nothing; no engine runs."""
