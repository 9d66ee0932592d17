"""The pipeline of a crawl whose scheduler acknowledges pages: what it calls safe, and what a bad disk does."""

from __future__ import annotations

import asyncio
import errno
import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.http import TextResponse
from scrapy.utils.test import get_crawler

from bigcrawl.clock import ManualClock
from bigcrawl.pipelines import warc
from bigcrawl.pipelines.page_writes import HANGING_MS
from bigcrawl.pipelines.warc import WarcPipeline
from tests.support.logs import of_bigcrawl
from tests.support.running.processes import wait_until
from tests.unit.warc.medium import Medium
from tests.unit.warc.reading import read_checked

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Desk:
    """A pipeline, its disk and its clock; the engine is what the pipeline may pause.

    At the end it waits for its disk until a busy machine has closed the file, or for `close_s`.
    """

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, close_s: float = 120, sync_s: float = 0.001
    ) -> None:
        monkeypatch.setattr(warc, "DISK_AT_CLOSE_SECONDS", close_s)
        crawl, politeness = SimpleNamespace(warc_sync_s=sync_s), SimpleNamespace(obey_robots=True)
        config = SimpleNamespace(crawl=crawl, politeness=politeness)
        self.payloads: list[tuple[str, bytes, bytes]] = []  # what the frontier was told: URL, body and SHA-1
        tell = lambda request, *payload: self.payloads.append((request.url, *payload))  # noqa: E731
        started = SimpleNamespace(held_of=lambda _: None, download_ms_of=lambda request: 7, record_payload=tell)
        frontier = SimpleNamespace(config=config, started=started)
        monkeypatch.setattr(warc, "frontier_of", lambda crawler: frontier)
        self.disk, self.clock = Medium(), ManualClock(1_700_000_000_000)
        self.directory = directory
        self.crawler = crawler = get_crawler(Spider)
        self.engine = SimpleNamespace(paused=False, pause=lambda: None, unpause=lambda: None)
        crawler.engine = self.engine  # type: ignore[assignment]
        self.pipeline = WarcPipeline(crawler, directory, self.clock, retry_seconds=0.001, files=self.disk)
        crawler.signals.connect(self.pipeline.response_downloaded, signal=signals.response_downloaded)
        self.pipeline.open_spider()

    def store(self, number: int) -> None:
        url = f"http://a.example/{number}"
        self.pipeline.response_downloaded(TextResponse(url, body=b"page"), Request(url))

    async def until(self, is_so: Any) -> None:
        async with asyncio.timeout(200):
            while not is_so():  # noqa: ASYNC110 - a thread makes it so
                await asyncio.sleep(0.001)

    def stored(self) -> list[str]:
        """URLs in the files that are closed, in order."""
        records = [record for path in sorted(self.directory.glob("*.gz")) for record in read_checked(path)]
        return [record.headers["WARC-Target-URI"] for record in records if record.type == "response"]


def test_the_frontier_is_told_the_digest_of_a_body_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it is computed once. Nobody knows that of a body that waits for room on the disk."""

    async def scenario() -> None:
        at = Desk(tmp_path, monkeypatch)
        at.store(0)
        at.disk.room = 0
        at.store(1)
        at.disk.room = None
        await at.until(at.pipeline.writes.is_flushed)
        await at.pipeline.close_spider()
        assert at.payloads == [("http://a.example/0", b"page", hashlib.sha1(b"page", usedforsecurity=False).digest())]

    asyncio.run(scenario())


def test_page_is_safe_when_it_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as it comes; safe behind the sync that began after it."""

    async def scenario() -> None:
        at = Desk(tmp_path, monkeypatch)
        at.disk.may_sync.clear()
        at.store(0)
        assert at.disk.is_syncing.wait(60)
        at.store(1)
        assert (at.pipeline.writes.pages, at.pipeline.writes.safe_pages) == (2, 0)
        assert at.pipeline.writes.is_flushed(), "it goes on taking pages"
        at.disk.may_sync.set()
        await at.until(lambda: at.pipeline.writes.safe_pages == 2)
        await at.pipeline.close_spider()
        assert at.stored() == ["http://a.example/0", "http://a.example/1"]

    asyncio.run(scenario())


def test_page_that_nothing_comes_behind_is_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the shortest time between two syncs; a page that is not waited for gathers more."""

    async def scenario() -> None:
        at = Desk(tmp_path, monkeypatch, sync_s=3_600)
        for number in range(3):
            at.store(number)
            at.pipeline.writes.hurry()
            await at.until(lambda number=number: at.pipeline.writes.safe_pages == number + 1)
        at.store(3)
        await at.pipeline.close_spider()
        assert at.pipeline.writes.safe_pages == 4

    asyncio.run(scenario())


def test_disk_that_hangs_is_told_once_and_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line while it lasts; the end waits for its bound and leaves the file for the next start."""

    async def scenario() -> None:
        at = Desk(tmp_path, monkeypatch, close_s=0.01)
        at.disk.may_sync.clear()
        at.store(0)
        assert at.disk.is_syncing.wait(60)
        at.clock.advance(HANGING_MS + 1)
        for _ in range(3):
            assert at.pipeline.writes.is_flushed()
        assert at.pipeline.writes.safe_pages == 0
        await at.pipeline.close_spider()
        assert at.pipeline.writes.safe_pages == 0
        at.disk.may_sync.set()
        wait_until(lambda: not list(tmp_path.glob("*.open")), "the disk comes back")

    asyncio.run(scenario())
    said = [record.getMessage() for record in of_bigcrawl(caplog) if record.levelname == "ERROR"]
    assert [line for line in said if "has not answered for 10 s" in line] == said[:1]
    assert "the last writes to " in said[1]


def test_a_crawl_that_ends_by_itself_waits_for_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There may be no next start, which would close its last file. A signal that comes meanwhile ends the wait."""

    def open_files(directory: Path) -> list[Path]:
        return list(directory.glob("*.open"))

    async def scenario(directory: Path, *, comes_signal: bool) -> None:
        at = Desk(directory, monkeypatch, close_s=0.01)
        at.crawler.crawling = True
        at.disk.may_sync.clear()
        at.store(0)
        assert at.disk.is_syncing.wait(60)
        closing = asyncio.ensure_future(at.pipeline.close_spider())
        await asyncio.wait([closing], timeout=1)
        assert not closing.done()
        if comes_signal:
            at.crawler.crawling = False
            await closing
            assert open_files(directory)
        at.disk.may_sync.set()
        await closing
        wait_until(lambda: not open_files(directory), "the disk has all")
        assert at.stored() == ["http://a.example/0"]

    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    asyncio.run(scenario(tmp_path / "whole", comes_signal=False))
    assert not of_bigcrawl(caplog)
    asyncio.run(scenario(tmp_path / "stopped", comes_signal=True))
    assert "the last writes to " in caplog.text


def test_pages_of_a_sync_that_failed_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux has given them up, and the next sync would succeed without them."""

    async def scenario() -> None:
        at = Desk(tmp_path, monkeypatch)
        at.store(0)
        await at.until(lambda: at.pipeline.writes.safe_pages == 1)
        at.disk.error = OSError(errno.EIO, "Input/output error")
        for number in (1, 2):
            at.store(number)
        await at.until(lambda: at.pipeline._disk.error is not None)
        at.store(3)
        assert not at.pipeline.writes.is_flushed(), "nothing is fetched until they are written"
        assert (at.pipeline.writes.pages, at.pipeline.writes.safe_pages) == (4, 1)
        await at.until(at.pipeline.writes.is_flushed)
        await at.until(lambda: at.pipeline.writes.safe_pages == 4)
        await at.pipeline.close_spider()
        assert sorted(at.stored()) == [f"http://a.example/{number}" for number in range(4)]

    asyncio.run(scenario())
