"""Errors of download handlers that say nothing of a host: said once, counted, and the host's standing is as before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.exceptions import DownloadTimeoutError, NotSupported, StopDownload

from bigcrawl.downloads import own_errors
from bigcrawl.downloads.http import HttpDownloadHandler
from bigcrawl.downloads.own_errors import OwnErrors
from bigcrawl.redisdb.scripts import NO_EFFECT
from bigcrawl.scheduler.adapter.fetch_errors import UrlRefusedError
from bigcrawl.stats_buffer import stats_wanted
from tests.unit.downloads.crawlers import new_crawler
from tests.unit.downloads.servers import ok, sends, serving
from tests.unit.downloads.test_downloader import crawling
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = Request("http://a.example/")


def test_first_of_each_class_is_logged_and_the_last_line_counts_them(caplog: pytest.LogCaptureFixture) -> None:
    """Failures of hosts, refusals, and what a signal has stopped are none."""
    crawler = new_crawler()
    crawler.spider = Spider(name="x")
    errors = OwnErrors(crawler)
    for error in (
        OSError("a"),
        OSError("b"),
        NotSupported("no http"),
        DownloadTimeoutError(),
        UrlRefusedError("u", "x"),
        StopDownload(),
    ):
        errors.count_error(error, REQUEST)
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert ["OSError: a" in line or "NotSupported: no http" in line for line in said] == [True, True]
    crawler.signals.send_catch_log(signals.spider_closed)
    assert caplog.records[-1].getMessage() == "2 downloads failed by builtins.OSError"
    crawler.signals.send_catch_log(stats_wanted)
    assert crawler.stats is not None
    assert crawler.stats.get_value("bigcrawl/handler_errors") == 3


def test_classes_are_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A handler may make a class for each error."""
    monkeypatch.setattr(own_errors, "KINDS_MAX", 3)
    errors = OwnErrors(new_crawler())
    for number in range(9):
        errors.count_error(type(f"Error{number}", (Exception,), {})(), REQUEST)
    assert len(caplog.records) == 3


class OwnError(Exception):
    """Of a library."""


class OwnHandler:
    lazy = True

    def __init__(self, crawler: Any) -> None:
        pass

    @classmethod
    def from_crawler(cls, crawler: Any) -> OwnHandler:
        return cls(crawler)

    async def download_request(self, request: Request) -> Any:
        raise OwnError(request.url)

    async def close(self) -> None:
        pass


def test_page_that_fails_by_a_handler_says_nothing_of_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The error comes unchanged, also one over robots.txt, which is not logged again for the page."""

    async def scenario() -> None:
        async with crawling(tmp_path) as crawl:
            crawl.downloader.handlers._handlers._schemes["http"] = OwnHandler
            request, held = crawl.hand_out("http://a.example/")
            with pytest.raises(OwnError, match=r"http://a\.example/"):
                await crawl.fetch(request)
            assert held.outcome == "error:other"
            refused, other = crawl.hand_out("http://a.example/other")
            error = OwnError("over robots.txt")
            other.refuse("error:other", error)
            with pytest.raises(OwnError) as caught:
                await crawl.fetch(refused)
            assert caught.value is error
            assert other.outcome == "error:other"

    asyncio.run(scenario())
    assert [r.getMessage().count("OwnError: http://a.example/.") for r in caplog.records if r.levelname == "ERROR"] == [
        1
    ]


def test_host_rests_after_an_error_of_ours_as_after_any_fetch(tmp_path: Path) -> None:
    """Its robots.txt may have been asked for; and nothing is told of it."""
    desk = Desk(tmp_path)
    for seq, error in ((1, None), (2, OwnError())):
        held = desk.taken(seq)
        if error is not None:
            desk.handout.fail(held, "error:other", error)
        else:
            desk.handout.admit(held)
        assert desk.handout.buffer.pop() is held
        held.record_download("error:other")
        desk.handout.fetches.end(held)
        assert held.end is not None
        assert (held.end.counter, held.end.effect) == ("error:other", NO_EFFECT)
        assert held.end.delay_ms == desk.config.politeness.host_delay_ms > 0
    assert not desk.handout.health.failing_count


def test_handler_may_be_made_before_there_is_a_loop() -> None:
    """As a plug-in makes the one that it falls back to."""
    handler = HttpDownloadHandler.from_crawler(new_crawler())

    async def scenario() -> None:
        async with serving(sends(ok(b"page"))) as server:
            response = await handler.download_request(Request(server.url("/")))
            assert response.body == b"page"
            await handler.close()

    asyncio.run(scenario())
    asyncio.run(HttpDownloadHandler.from_crawler(new_crawler()).close())
