"""What an answer may cost, with real sockets: the handler cuts or fails it, counts why, and hangs up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, DownloadTimeoutError

from bigcrawl.scheduler.scheduler import Scheduler
from tests.unit.downloads.crawlers import handling, new_crawler
from tests.unit.downloads.servers import ok, sends, serving

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from tests.unit.downloads.servers import Answer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


async def endless(path: str, writer: asyncio.StreamWriter) -> None:
    """A body that goes on until the client hangs up, framed as the path says."""
    framed = path == "/chunked"
    writer.write(CHUNKED if framed else HEAD + b"\r\n")
    while True:
        writer.write(b"3e8\r\n" + b"x" * 1000 + b"\r\n" if framed else b"x" * 1000)
        await writer.drain()


async def endless_head(path: str, writer: asyncio.StreamWriter) -> None:
    """A head that goes on until the client hangs up: of many short lines, or of interim answers."""
    if path != "/interim":
        writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" if path == "/interim" else b"X-More: and more\r\n")
        await writer.drain()
        await asyncio.sleep(0)


async def stalling(path: str, writer: asyncio.StreamWriter) -> None:
    """Sends a part and then nothing."""
    writer.write(HEAD + b"Content-Length: 100\r\n\r\n" + (b"" if path == "/mute" else b"a part"))
    await asyncio.Event().wait()


def counts(crawler: Crawler) -> dict[str, int]:
    assert crawler.stats is not None
    prefix = "bigcrawl/limits/"
    return {key[len(prefix) :]: count for key, count in crawler.stats.get_stats().items() if key.startswith(prefix)}


def fetch(answer: Answer, path: str, crawler: Crawler, meta: dict[str, Any] | None = None) -> Response:
    """Fetch from such a server, and see to it that the connection is closed when the answer was not whole."""

    async def scenario() -> Response:
        async with serving(answer) as server, handling(crawler) as handler:
            try:
                async with asyncio.timeout(60):
                    return await handler.download_request(Request(server.url(path), meta=meta or {}))
            finally:
                handler._unread._stats_buffer.flush()
                await server.until(lambda: server.open == 0)

    return asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/chunked", "/closing"])
def test_endless_body_is_cut_at_its_bound(path: str) -> None:
    """To the byte; the response says so, and the server is hung up on."""
    crawler = new_crawler(DOWNLOAD_MAXSIZE=50_500)
    response = fetch(endless, path, crawler)
    assert (response.status, len(response.body), response.flags) == (200, 50_500, ["truncated"])
    assert counts(crawler) == {"size": 1}


def test_endless_body_fails_where_that_is_wanted() -> None:
    """As in Scrapy; by setting, or by request."""
    for settings, meta in (({"BIGCRAWL_TRUNCATE": False}, {}), ({}, {"download_truncate": False})):
        crawler = new_crawler(DOWNLOAD_MAXSIZE=5_000, **settings)
        with pytest.raises(DownloadCancelledError):
            fetch(endless, "/chunked", crawler, meta)
        assert counts(crawler) == {"size": 1}


def test_stalled_body_is_cut_when_time_is_up() -> None:
    """DOWNLOAD_TIMEOUT: a part is better than nothing, and nothing is a failure."""
    crawler = new_crawler(DOWNLOAD_TIMEOUT=0.2)
    with pytest.raises(DownloadTimeoutError):
        fetch(stalling, "/mute", crawler)
    assert counts(crawler) == {"time": 1}
    response = None
    for timeout_s in (0.2, 2, 20):  # on a busy machine the part, too, may come when the time is up
        crawler = new_crawler(DOWNLOAD_TIMEOUT=timeout_s)
        with suppress(DownloadTimeoutError):
            response = fetch(stalling, "/", crawler)
            break
    assert response is not None
    assert (response.body, response.flags) == (b"a part", ["truncated-time"])
    assert counts(crawler) == {"time": 1}


@pytest.mark.parametrize(("path", "limits"), [("/lines", {"headers"}), ("/interim", {"headers", "header-bytes"})])
def test_endless_head_is_broken_off(path: str, limits: set[str]) -> None:
    """No part of it is worth anything, so the fetch fails."""
    crawler = new_crawler()
    with pytest.raises(DownloadCancelledError):
        fetch(endless_head, path, crawler)
    [(limit, count)] = counts(crawler).items()
    assert limit in limits
    assert count == 1


def test_file_of_a_media_pipeline_is_not_cut() -> None:
    """With a frontier, only what it handed out is; the rest fails, unless its meta says otherwise."""
    crawler = new_crawler(DOWNLOAD_MAXSIZE=5_000)
    frontier = Scheduler.from_crawler(crawler)
    with pytest.raises(DownloadCancelledError):
        fetch(endless, "/chunked", crawler)
    assert fetch(endless, "/chunked", crawler, {"download_truncate": True}).flags == ["truncated"]
    assert frontier.node is None


def test_connection_is_used_for_so_many_requests() -> None:
    """Then it is closed and another one opened."""
    crawler = new_crawler(BIGCRAWL_CONNECTION_REQUESTS_MAX=3)

    async def scenario() -> list[int]:
        async with serving(sends(ok())) as server, handling(crawler) as handler:
            accepted = []
            for _ in range(7):
                assert (await handler.download_request(Request(server.url()))).body == b"ok"
                accepted.append(server.accepted)
            await server.until(lambda: server.open == 1)
            handler._unread._stats_buffer.flush()
            return accepted

    assert asyncio.run(scenario()) == [1, 1, 1, 2, 2, 2, 3]
    assert counts(crawler) == {"connection-requests": 2}


def test_connection_is_not_used_when_it_is_old() -> None:
    """libcurl's clock has whole seconds."""
    crawler = new_crawler(BIGCRAWL_CONNECTION_AGE_MAX=1)

    async def scenario() -> int:
        async with serving(sends(ok())) as server, handling(crawler) as handler:
            for pause_s in (0, 0, 2.1):
                await asyncio.sleep(pause_s)
                await handler.download_request(Request(server.url()))
            handler._unread._stats_buffer.flush()
            return server.accepted

    assert asyncio.run(scenario()) == 2
    assert counts(crawler) == {"connection-age": 1}
