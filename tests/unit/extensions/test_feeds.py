"""The feed exporter's buffer: emptied when it is told to, and a full disk loses nothing."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from bigcrawl.extensions.feeds import FeedExporter, cut_torn_line
from bigcrawl.scheduler.adapter.registry import feeds_of, register

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.extensions.feedexport import FeedSlot

    from bigcrawl.exceptions import BigcrawlError


@contextlib.contextmanager
def exporter(path: Path, **options: Any) -> Iterator[FeedExporter]:
    """An exporter that is open, to one feed."""
    crawler = get_crawler(Spider, {"FEEDS": {str(path): {"format": "jsonlines", **options}}})
    crawler.spider = Spider("feeds")
    made = FeedExporter.from_crawler(crawler)
    assert feeds_of(crawler) is made
    made.open_spider(crawler.spider)
    files = [made.slots[0]]
    yield made
    for slot in (*files, *made.slots):
        file_of(slot).close()


def file_of(slot: FeedSlot) -> IO[bytes]:
    assert slot.file is not None
    return slot.file


def export(feeds: FeedExporter, *numbers: int) -> None:
    assert feeds.crawler.spider is not None
    for number in numbers:
        feeds.item_scraped({"number": number}, feeds.crawler.spider)


def numbers_in(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines()]


def test_items_are_written_together(tmp_path: Path) -> None:
    """Nothing is written item by item: one flush hands all of them over, and one without new items does nothing."""
    with exporter(path := tmp_path / "items.jl") as feeds:
        export(feeds, *range(50))
        assert path.read_bytes() == b""
        assert feeds.flush()
        assert numbers_in(path) == list(range(50))
        file_of(feeds.slots[0]).close()
        assert feeds.flush(), "a file that is closed would not take a flush"


def test_full_batch_is_written_before_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its closing is a task that runs later, maybe after the acknowledgement."""
    with exporter(tmp_path / "items-%(batch_id)d.jl", batch_item_count=2) as feeds:
        monkeypatch.setattr(feeds, "_schedule_slot_close", lambda *_: None)  # a loop that has other things to do first
        export(feeds, 1, 2, 3)
        assert numbers_in(tmp_path / "items-1.jl") == [1, 2]
        assert feeds.flush()
        assert numbers_in(tmp_path / "items-2.jl") == [3]


def test_full_disk_holds_items_back_until_there_is_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While the disk takes nothing the feed is stuck, and every item waits, also those that no buffer has room for."""
    with exporter(path := tmp_path / "items.jl") as feeds, Path("/dev/full").open("wb") as full:
        export(feeds, 0)
        file = file_of(feeds.slots[0]).fileno()
        room = os.dup(file)
        os.dup2(full.fileno(), file)
        assert (feeds.flush(), feeds.is_stuck) == (False, True)
        assert f"a feed cannot be written ({path})" in caplog.text, "the system's words name no file"
        export(feeds, *range(1, 3000))
        assert not feeds.flush()
        os.dup2(room, file)
        os.close(room)
        assert (feeds.flush(), feeds.is_stuck) == (True, False)
        assert numbers_in(path) == list(range(3000))


def test_pipe_that_nothing_reads_ends_the_crawl(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As behind `| head`: it never gets room."""

    class Ending:
        is_open, node = True, None

        def __init__(self) -> None:
            self.errors: list[str] = []

        def fail(self, error: BigcrawlError) -> None:
            self.errors.append(str(error))

    read_end, write_end = os.pipe()
    os.close(read_end)
    with exporter(tmp_path / "items.jl") as feeds:
        register(feeds.crawler, cast("Any", ending := Ending()))
        export(feeds, 0)
        os.dup2(write_end, file_of(feeds.slots[0]).fileno())
        assert (feeds.flush(), feeds.flush(), feeds.is_stuck) == (False, False, True)
        [error] = ending.errors
        assert error.startswith("nothing reads the items any more")
        assert "make room" not in caplog.text
        with contextlib.suppress(BrokenPipeError):
            file_of(feeds.slots[0]).close()
    os.close(write_end)


@pytest.mark.parametrize(
    ("text", "kept", "quoted"),
    [
        (b"one\ntwo\n", b"one\ntwo\n", False),
        (b"one\ntw", b"one\n", False),
        (b"on", b"", False),
        (b'a,"b\nc"\nd,"e\nf', b'a,"b\nc"\n', True),
        (b'a,"b ""\nc"\nd', b'a,"b ""\nc"\n', True),
    ],
)
def test_torn_line_is_cut(tmp_path: Path, text: bytes, kept: bytes, quoted: bool) -> None:
    """Whole lines stay; in CSV a line end between quotes is no end."""
    path = tmp_path / "items"
    path.write_bytes(text)
    assert cut_torn_line(path, quoted=quoted) == len(text) - len(kept)
    assert path.read_bytes() == kept
