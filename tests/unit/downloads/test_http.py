"""The download handler on libcurl, against real servers: what it sends, what it makes of answers and failures."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
)

from bigcrawl.downloads import http as http_module
from bigcrawl.scheduler.adapter.fetch_errors import UrlRefusedError
from bigcrawl.scheduler.scheduler import Scheduler
from tests.unit.downloads.crawlers import handling, new_crawler
from tests.unit.downloads.servers import ok, sends, serving

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from tests.unit.downloads.servers import Answer

HEAD = b"HTTP/1.1 200 OK\r\n"
SHORT = HEAD + b"Content-Length: 9\r\n\r\nfour"


async def fetched(answer: Answer, crawler: Crawler | None = None, **request: Any) -> tuple[Response, list[bytes]]:
    """A response, and the heads that its server got."""
    async with serving(answer) as server, handling(crawler) as handler:
        async with asyncio.timeout(60):
            response = await handler.download_request(Request(server.url("/page"), **request))
        return response, server.heads


def fetch(*parts: bytes, crawler: Crawler | None = None, closes: bool = False, **request: Any) -> Response:
    return asyncio.run(fetched(sends(*parts, closes=closes), crawler, **request))[0]


# --- answers


def test_interim_heads_trailers_and_folds_are_read_as_browsers_do() -> None:
    """The head that counts is the last one; what comes after the body is no header."""
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
    head = HEAD + b"X-Folded: one\r\n two\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = fetch(early, head, b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert (response.status, response.body, response.flags) == (200, b"onetwo", [])
    shown = {name: response.headers.getlist(name) for name in response.headers}
    assert shown == {b"X-Folded": [b"one two"], b"Set-Cookie": [b"a", b"b"]}
    assert str(response.ip_address) == "127.0.0.1"


def test_head_in_single_bytes_is_the_same_head() -> None:
    """However the network cuts it."""
    response = fetch(*(bytes([byte]) for byte in ok(b"page")))
    assert (response.body, response.headers["Content-Length"]) == (b"page", b"4")


def test_body_until_the_connection_ends_is_partial() -> None:
    """HTTP/1.0: nobody knows whether it is whole."""
    response = fetch(b"HTTP/1.0 200 OK\r\n\r\npage", closes=True)
    assert (response.body, response.flags, response.protocol) == (b"page", ["partial"], "HTTP/1.0")


# --- requests


def test_headers_are_sent_as_they_are_and_no_others() -> None:
    """An empty value is sent; a project that names no Accept sends none."""
    headers = {"X-Empty": "", "X-Twice": ["one", "two"], "DNT": "1", "X-Bytes": b"\xff", "Proxy-Authorization": "no"}
    _, [head] = asyncio.run(fetched(sends(ok()), headers=headers))
    first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
    assert first == b"GET /page HTTP/1.1"
    names = [line for line in lines if not line.lower().startswith(b"host:")]
    assert sorted(names) == [b"DNT: 1", b"X-Bytes: \xff", b"X-Empty:", b"X-Twice: one", b"X-Twice: two"]


@pytest.mark.parametrize(
    ("path", "sent"), [("/?", b"/?"), ("/a/../b//c", b"/a/../b//c"), ("/%7e?a=%zz#part", b"/%7e?a=%zz")]
)
def test_verbatim_url_is_sent_byte_by_byte(path: str, sent: bytes) -> None:
    """But for its fragment."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, handling() as handler:
            url = server.url("") + path
            response = await handler.download_request(Request(url, meta={"verbatim_url": True}))
            assert server.heads[0].split(b" ")[1] == sent
            assert response.url == url.partition("#")[0]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "sent"), [("", b"/"), ("?", b"/?"), ("?a=1", b"/?a=1"), ("?to=/login", b"/?to=/login"), ("#/a", b"/")]
)
def test_url_without_a_path_asks_for_the_root(path: str, sent: bytes) -> None:
    """With its query, whatever stands in it."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, handling() as handler:
            await handler.download_request(Request(server.url(path), meta={"verbatim_url": True}))
            assert server.heads[0].split(b" ")[1] == sent

    asyncio.run(scenario())


@pytest.mark.parametrize("value", [b"a\r\nX-Injected: 1", b"a\nb", b"a\0b"])
def test_value_that_breaks_its_line_is_never_given_to_libcurl(value: bytes) -> None:
    """Scrapy's own handler judges such a request."""

    async def scenario() -> None:
        async with handling() as handler:
            assert handler._header_lines(Request("http://a.example/", headers={"X": value})) is None

    asyncio.run(scenario())


def test_each_request_sends_its_own_headers() -> None:
    """Whatever the one before it sent: another value, another order, more, fewer, or what its spider has changed."""
    given = [
        {"A": ["1"], "B": ["2"]},
        {"A": ["1"], "B": ["2"]},
        {"A": ["1"], "B": ["3"]},
        {"B": ["3"], "A": ["1"]},
        {"B": ["3", "4"], "A": ["1"]},
        {"B": ["3", ""]},
        {},
    ]

    async def scenario() -> None:
        async with handling() as handler:
            for headers in given:
                request = Request("http://a.example/", headers=headers)
                written = [f"{name}: {value}" if value else f"{name};" for name in headers for value in headers[name]]
                for _ in range(2):
                    lines = handler._header_lines(request)
                    assert lines == [line.encode() for line in (*written, "Accept:", "User-Agent:")]
                request.headers.appendlist("A", "more")
                assert b"A: more" in (handler._header_lines(request) or ())

    asyncio.run(scenario())


# --- failures

REFUSED = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("answer", "meta", "error"),
    [
        (sends(SHORT, closes=True), {}, ResponseDataLossError),
        (sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfo", closes=True), {}, ResponseDataLossError),
        (sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\nodd"), {}, ResponseDataLossError),
        (sends(closes=True), {}, DownloadFailedError),
        (sends(b"SSH-2.0-odd\r\n", closes=True), {}, DownloadFailedError),
        (sends(SHORT), {"download_timeout": 0.1}, DownloadTimeoutError),
        (sends(ok(b"x" * 200)), {"download_maxsize": 100}, DownloadCancelledError),
        (sends(HEAD + b"\r\n" + b"x" * 200), {"download_maxsize": 100}, DownloadCancelledError),
    ],
    ids=["cut", "cut-chunk", "bad-chunk", "silent", "no-http", "slow", "long", "grows"],
)
def test_failure_is_scrapys_exception(answer: Answer, meta: dict[str, Any], error: type[Exception]) -> None:
    """Retry middleware, stats and errbacks know it by its class."""
    with pytest.raises(error) as caught:
        asyncio.run(fetched(answer, meta=meta, crawler=new_crawler(BIGCRAWL_TRUNCATE=False)))
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("url", "error"), [(REFUSED, DownloadConnectionRefusedError), ("http://no.such.invalid/", CannotResolveHostError)]
)
def test_server_that_is_not_there_is_scrapys_exception(url: str, error: type[Exception]) -> None:
    """As above."""

    async def scenario() -> None:
        async with handling() as handler:
            with pytest.raises(error):
                await handler.download_request(Request(url))

    asyncio.run(scenario())


def test_lost_data_may_be_wanted(caplog: pytest.LogCaptureFixture) -> None:
    """By request or by setting; refused, it is warned of once."""
    kept = fetch(SHORT, closes=True, meta={"download_fail_on_dataloss": False})
    assert (kept.body, kept.flags) == (b"four", ["dataloss"])
    assert fetch(SHORT, closes=True, crawler=new_crawler(DOWNLOAD_FAIL_ON_DATALOSS=False)).flags == ["dataloss"]

    async def twice() -> None:
        async with serving(sends(SHORT, closes=True)) as server, handling() as handler:
            for _ in range(2):
                with pytest.raises(ResponseDataLossError):
                    await handler.download_request(Request(server.url()))

    asyncio.run(twice())
    assert caplog.text.count("Got data loss") == 1


def test_stopped_download_closes_its_connection_and_the_handle_serves_again() -> None:
    """A receiver's StopDownload ends the transfer at once, whatever the server still has to send."""
    crawler = new_crawler()

    def stop(data: bytes, request: Request, **_: Any) -> None:
        if request.url.endswith("/stop"):
            raise StopDownload(fail=False)

    crawler.signals.connect(stop, signals.bytes_received)

    async def scenario() -> None:
        async with serving(sends(HEAD + b"Content-Length: 4\r\n\r\n", b"four")) as server, handling(crawler) as handler:
            long = HEAD + b"Content-Length: 1000000\r\n\r\nfirst"
            async with serving(sends(long), "127.0.0.2") as endless:
                response = await handler.download_request(Request(endless.url("/stop")))
                assert (response.body, response.flags) == (b"first", ["download_stopped"])
                await endless.until(lambda: endless.open == 0)
            assert (await handler.download_request(Request(server.url()))).body == b"four"

    asyncio.run(scenario())


def test_cancelled_fetch_hurts_no_later_one() -> None:
    """Its handle is not used again while libcurl may still write to it."""

    async def scenario() -> None:
        async with serving(sends(SHORT)) as stuck, serving(sends(ok()), "127.0.0.2") as fine, handling() as handler:
            work = asyncio.ensure_future(handler.download_request(Request(stuck.url())))
            await stuck.until(lambda: bool(stuck.paths))
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await stuck.until(lambda: stuck.open == 0)
            assert (await handler.download_request(Request(fine.url()))).body == b"ok"
            assert len(handler._idle) == 1

    asyncio.run(scenario())


def test_page_that_was_handed_over_is_kept_by_nobody() -> None:
    """Handles wait for their next transfer without the last one's body and request: pages may be large."""

    async def scenario() -> None:
        async with serving(sends(ok(b"x" * 100_000))) as server, handling() as handler:
            request = Request(server.url())
            known = weakref.ref(request)
            await handler.download_request(request)
            del request
            gc.collect()
            assert known() is None

    asyncio.run(scenario())


# --- who fetches what


@pytest.mark.parametrize(
    "request_",
    [
        Request(REFUSED, method="POST"),
        Request(REFUSED, method="HEAD"),
        Request(REFUSED, body=b"x"),
        Request(REFUSED, meta={"proxy": "http://127.0.0.1:3128"}),
        Request(REFUSED, meta={"bindaddress": "127.0.0.2"}),
        Request("http://user:pass@127.0.0.1:1/"),
    ],
    ids=["post", "head", "body", "proxy", "bound", "login"],
)
def test_what_is_no_direct_get_is_scrapys(request_: Request) -> None:
    """As are all requests of a project that binds an address, and https with TLS settings of its own."""

    async def scenario() -> None:
        async with handling() as handler:
            assert not handler._is_plain(request_)
            assert handler._is_plain(Request(REFUSED))
            assert handler._is_plain(Request("https://127.0.0.1/"))
        async with handling(new_crawler(DOWNLOAD_BIND_ADDRESS="127.0.0.3")) as handler:
            assert not handler._is_plain(Request(REFUSED))
        async with handling(new_crawler(DOWNLOADER_CLIENT_TLS_CIPHERS="HIGH")) as handler:
            assert not handler._is_plain(Request("https://127.0.0.1/"))
            assert handler._is_plain(Request(REFUSED))

    asyncio.run(scenario())


def test_server_with_a_head_that_libcurl_refuses_is_read_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The try fails, and later ones of this host and port do not; the table of such servers is bounded."""
    monkeypatch.setattr(http_module, "SERVERS_REMEMBERED", 2)

    async def scenario() -> None:
        odd = sends(HEAD + b"no colon here\r\nContent-Length: 0\r\n\r\n")
        async with (
            serving(odd) as one,
            serving(odd, "127.0.0.2") as two,
            serving(odd, "127.0.0.3") as three,
            handling() as handler,
        ):
            for server in (one, two, three):
                with pytest.raises(DownloadFailedError):
                    await handler.download_request(Request(server.url()))
                assert (await handler.download_request(Request(server.url("/other")))).status == 200
            with pytest.raises(DownloadFailedError):
                await handler.download_request(Request(one.url()))
            assert (await handler.download_request(Request(three.url()))).status == 200

    asyncio.run(scenario())


def test_head_that_cannot_be_read_over_an_old_connection_is_tried_over_a_new_one_first() -> None:
    """It may be what the answer before it left there, which says nothing of the server."""

    async def odd_once(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-odd\r\n" if path == "/odd" else ok())
        if path == "/odd":
            writer.close()

    async def scenario() -> None:
        async with serving(odd_once) as server, handling() as handler:
            await handler.download_request(Request(server.url("/first")))
            with pytest.raises(DownloadFailedError):
                await handler.download_request(Request(server.url("/odd")))
            assert server.accepted == 1
            for path in ("/second", "/third"):  # by libcurl, which keeps the connection
                assert (await handler.download_request(Request(server.url(path)))).body == b"ok"
            assert server.accepted == 2

    asyncio.run(scenario())


def test_proxy_of_the_environment_is_for_scrapys_middleware_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """libcurl asks none by itself."""
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert fetch(ok(b"direct")).body == b"direct"


def test_public_address_is_not_asked_namelessly() -> None:
    """Not by what goes past the frontier either, such as a media pipeline; a shell has no crawl, and may."""
    crawler = new_crawler()
    frontier = Scheduler.from_crawler(crawler)

    async def scenario() -> None:
        async with handling(crawler) as handler:
            with pytest.raises(UrlRefusedError, match="BIGCRAWL_CONTACT"):
                await handler.download_request(Request("http://11.0.0.1/"))

    asyncio.run(scenario())
    assert frontier.node is None
