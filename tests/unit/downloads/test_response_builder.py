"""What is made of an answer's lines and pieces, whatever way they are cut: no server, no libcurl."""

from __future__ import annotations

import logging
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import DownloadCancelledError, DownloadFailedError, IgnoreRequest, StopDownload
from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes

from bigcrawl.config import read_config
from bigcrawl.downloads.response_builder import BREAK_OFF, PIECE_BYTES, SMALL_PIECES_MAX, AnswerLimits, ResponseBuilder
from bigcrawl.downloads.signalling import SignalSender
from bigcrawl.scheduler.adapter.fetch_errors import error_outcome
from tests.support.logs import of_bigcrawl
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

URL = "http://a.example/page"
_QUIET = new_crawler()  # nobody listens to its signals


def receiving(
    *lines: bytes,
    crawler: Crawler | None = None,
    url: str = URL,
    maxsize: int = 0,
    warnsize: int = 0,
    truncates: bool = False,
) -> ResponseBuilder:
    """A builder that was given these lines of a head."""
    crawler = crawler or _QUIET
    limits = read_config(crawler.settings).limits
    bounds = AnswerLimits(maxsize, warnsize, limits.header_bytes_max, limits.headers_max)
    builder = ResponseBuilder(Request(url), SignalSender(crawler), bounds, truncates=truncates)
    for line in lines:
        builder.header(line + b"\r\n")
    return builder


def received(*lines: bytes, body: bytes = b"", **options: Any) -> Response:
    builder = receiving(*lines, b"", **options)
    if body:
        builder.body(body)
    assert builder.error is None
    return builder.response("192.0.2.1", None)


def shown(response: Response) -> dict[bytes, list[bytes]]:
    return {name: response.headers.getlist(name) for name in response.headers}


# --- heads


def test_only_the_last_head_counts() -> None:
    """Interim answers come before it; none of their headers is the page's."""
    early = (b"HTTP/1.1 103 Early Hints", b"Link: </a.css>", b"X-Both: early", b"")
    response = received(b"HTTP/1.1 100 Continue", b"", *early, b"HTTP/1.1 200 OK", b"X-Both: late", body=b"page")
    assert (response.status, response.body) == (200, b"page")
    assert shown(response) == {b"X-Both": [b"late"]}


@pytest.mark.parametrize("status", [b"100 Continue", b"102 Processing", b"103 Early Hints", b"199 Odd"])
def test_interim_head_is_not_told_of(status: bytes) -> None:
    """`headers_received` and the latency are for the head of the page."""
    crawler = new_crawler()
    heard: list[Any] = []
    crawler.signals.connect(_noting(heard), signals.headers_received, weak=False)
    builder = receiving(b"HTTP/1.1 " + status, b"Content-Length: 5", b"", crawler=crawler)
    assert (heard, builder.is_head_whole, "download_latency" in builder.request.meta) == ([], False, False)
    builder.header(b"HTTP/1.1 404 Not Found\r\n")
    builder.header(b"\r\n")
    assert (len(heard), builder.is_head_whole, builder.request.meta["download_latency"] >= 0) == (1, True, True)


def test_switching_protocols_is_a_whole_head() -> None:
    """No other head follows a 101."""
    assert receiving(b"HTTP/1.1 101 Switching Protocols", b"").is_head_whole


def test_trailers_are_no_headers() -> None:
    """Lines after the head are a chunked body's; they change nothing and end nothing."""
    builder = receiving(b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked", b"X-One: head", b"")
    builder.body(b"page")
    assert [builder.header(line) for line in (b"X-One: trailer\r\n", b"HTTP/1.1 500 No\r\n", b"\r\n")] == [None] * 3
    response = builder.response("192.0.2.1", None)
    assert (response.status, shown(response)) == (200, {b"X-One": [b"head"]})


def test_lines_without_a_colon_are_left_out() -> None:
    """Junk and what is folded wrongly spoil nothing before or after them."""
    response = received(b"HTTP/1.1 200 OK", b"X-One: 1", b"junk", b" folded junk", b"\tjunk\x00", b"X-Two: 2")
    assert shown(response) == {b"X-One": [b"1"], b"X-Two": [b"2"]}


def test_values_of_one_name_keep_their_order_and_bytes() -> None:
    """However the name is written; spaces around a value are not of it, those inside are."""
    response = received(
        b"HTTP/1.1 200 OK",
        b"set-cookie: a=1",
        b"SET-COOKIE:b=2",
        b"Set-Cookie : \t c = 3 \t",
        b"X-Empty:",
        b"X: \xff\xc3",
    )
    assert response.headers.getlist("Set-Cookie") == [b"a=1", b"b=2", b"c = 3"]
    assert response.headers[b"X-Empty"] == b""
    assert response.headers[b"X"] == b"\xff\xc3"


def test_headers_of_the_connection_are_left_out() -> None:
    """A spider sees what is of the answer, as with Scrapy's default handler."""
    names = (b"connection", b"Keep-Alive", b"proxy-connection", b"TE", b"Trailers", b"Transfer-Encoding", b"Upgrade")
    response = received(b"HTTP/1.1 200 OK", *(name + b": x" for name in names), b"X-Kept: y")
    assert shown(response) == {b"X-Kept": [b"y"]}


def test_length_is_one_or_none() -> None:
    """Said twice it is shown once; beside chunks it is wrong, and not shown."""
    twice = received(b"HTTP/1.1 200 OK", b"Content-Length: 4", b"Content-Length: 4", body=b"page")
    chunked = received(b"HTTP/1.1 200 OK", b"Content-Length: 3", b"Transfer-Encoding: chunked", body=b"page")
    assert twice.headers.getlist("Content-Length") == [b"4"]
    assert "Content-Length" not in chunked.headers


@pytest.mark.parametrize("line", [b"HTTP/1.1 2x0 OK", b"HTTP/1.1 ", b"HTTP/1.1", b"HTTP/"])
def test_head_that_cannot_be_read_breaks_off_and_raises_nothing(line: bytes) -> None:
    """libcurl's callbacks must not raise: the error waits for who can."""
    builder = receiving()
    assert builder.header(line + b"\r\n") == BREAK_OFF
    assert isinstance(builder.error, DownloadFailedError)


@pytest.mark.parametrize(
    ("head", "is_partial"),
    [
        ((b"HTTP/1.0 200 OK",), True),
        ((b"HTTP/1.1 200 OK",), True),
        ((b"HTTP/1.1 200 OK", b"Content-Length: 0"), False),
        ((b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked"), False),
        ((b"HTTP/1.1 204 No Content",), False),
        ((b"HTTP/1.1 304 Not Modified",), False),
        ((b"HTTP/2 200",), False),
    ],
)
def test_body_that_only_the_connections_end_ends_is_partial(head: tuple[bytes, ...], is_partial: bool) -> None:
    """Nobody knows whether such a body is whole; Scrapy's flag for it is `partial`."""
    assert received(*head).flags == ["partial"] * is_partial


def test_response_says_where_it_came_from() -> None:
    """URL without its fragment, address, protocol, and text by the charset that the head names."""
    page = received(b"HTTP/1.0 200 OK", b"Content-Type: text/html; charset=latin-1", url=URL + "#part", body=b"\xe9")
    assert (type(page), page.url, page.protocol) == (HtmlResponse, URL, "HTTP/1.0")
    assert (str(page.ip_address), page.text) == ("192.0.2.1", "é")


@pytest.mark.parametrize("url", [URL, URL + ".html", URL + ".json", URL + ".png"])
@pytest.mark.parametrize("coding", [None, b"gzip", b"identity"])
@pytest.mark.parametrize(
    "kind", [None, b"text/html", b"text/plain", b"application/json", b"text/xml", b"image/png", b"odd", b"text/odd"]
)
def test_class_of_a_response_is_scrapys_choice(kind: bytes | None, coding: bytes | None, url: str) -> None:
    """But for what tells no type and begins as HTML, wherever it is: browsers show it as HTML."""
    named = {b"Content-Type": kind, b"Content-Encoding": coding}
    headers = {name: value for name, value in named.items() if value is not None}
    lines = [name + b": " + value for name, value in headers.items()]
    for body in (b"", b"<!DOCTYPE html><p>page", b"\x89PNG\x00\x01", b"plain words"):
        wanted = responsetypes.from_args(headers=Headers(headers), url=url, body=body)
        if kind in (None, b"odd") and coding is None and body.startswith(b"<!DOCTYPE"):
            wanted = HtmlResponse
        assert type(received(b"HTTP/1.1 200 OK", *lines, url=url, body=body)) is wanted


def test_address_of_a_link_is_read_without_its_zone() -> None:
    """libcurl may name the interface of a link-local address."""
    builder = receiving(b"HTTP/1.1 200 OK", b"")
    assert str(builder.response("fe80::1%eth0", None).ip_address) == "fe80::1"
    assert builder.response("", None).ip_address is None


# --- sizes


def test_length_that_is_too_large_breaks_off_before_the_body(caplog: pytest.LogCaptureFixture) -> None:
    """DOWNLOAD_MAXSIZE by Content-Length: nothing of the body is waited for."""
    builder = receiving(b"HTTP/1.1 200 OK", b"Content-Length: 101", maxsize=100)
    assert builder.header(b"\r\n") == BREAK_OFF
    assert isinstance(builder.error, DownloadCancelledError)
    assert "101 bytes which is larger than download max size (100)" in caplog.text


def test_length_beside_chunks_is_nobodys_length() -> None:
    """The chunks say how much comes: what the other header claims is neither judged nor told."""
    crawler = new_crawler()
    heard: list[Any] = []
    crawler.signals.connect(_noting(heard), signals.headers_received, weak=False)
    lines = (b"HTTP/1.1 200 OK", b"Content-Length: 500", b"Transfer-Encoding: chunked", b"")
    builder = receiving(*lines, crawler=crawler, maxsize=100)
    assert builder.error is None
    assert heard[0]["body_length"] is None


def test_body_that_grows_too_large_breaks_off_and_is_forgotten() -> None:
    """DOWNLOAD_MAXSIZE by bytes: at the limit nothing happens, with the byte beyond it the transfer ends."""
    builder = receiving(b"HTTP/1.1 200 OK", b"", maxsize=100)
    assert builder.body(b"x" * 100) is None
    assert builder.body(b"x") == BREAK_OFF
    assert isinstance(builder.error, DownloadCancelledError)
    assert builder._received.getvalue() == b""


@pytest.mark.parametrize("truncates", [True, False])
def test_body_in_small_pieces_ends_at_a_limit_and_takes_its_bytes(truncates: bool) -> None:
    """A piece takes time and an object, however small: 16 MB in pieces of two bytes took eight seconds and 1 GB."""
    builder = receiving(b"HTTP/1.1 200 OK", b"", maxsize=1 << 24, truncates=truncates)
    tracemalloc.start()
    given = 0
    while builder.body(b"%02d" % (given % 100)) is None:
        given += 1
        assert given < 2 * SMALL_PIECES_MAX
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 1 << 20
    assert (builder.limit, builder.is_truncated) == ("pieces", truncates)
    assert (builder.error is None) == truncates
    large = receiving(b"HTTP/1.1 200 OK", b"", maxsize=1 << 30)
    assert {large.body(b"x" * PIECE_BYTES) for _ in range(2 * SMALL_PIECES_MAX)} == {None}


@pytest.mark.parametrize("head", [(b"Content-Length: 300",), ()])
def test_large_body_is_warned_of_once(head: tuple[bytes, ...], caplog: pytest.LogCaptureFixture) -> None:
    """DOWNLOAD_WARNSIZE: one line a body, whether its length was said or found."""
    builder = receiving(b"HTTP/1.1 200 OK", *head, b"", warnsize=99)
    with caplog.at_level(logging.WARNING):
        assert [builder.body(b"x" * 60) for _ in range(5)] == [None] * 5
    assert caplog.text.count("larger than download warn size (99)") == 1


def test_no_limit_means_none(caplog: pytest.LogCaptureFixture) -> None:
    """0 switches a limit off."""
    response = received(b"HTTP/1.1 200 OK", b"Content-Length: 1000000000", body=b"x" * 100_000)
    assert len(response.body) == 100_000
    assert "larger than" not in caplog.text


@pytest.mark.parametrize("head", [(b"Content-Length: 300",), (b"Transfer-Encoding: chunked",), ()])
@pytest.mark.parametrize("pieces", [(b"x" * 300,), (b"x" * 100, b"y"), (b"x" * 60, b"x" * 60)])
def test_body_that_grows_too_large_may_be_cut(head: tuple[bytes, ...], pieces: tuple[bytes, ...]) -> None:
    """To the byte, however it comes, and whatever its length was said to be; the flags say so and nothing else."""
    builder = receiving(b"HTTP/1.1 200 OK", *head, b"", maxsize=100, truncates=True)
    assert builder.error is None
    *earlier, last = [builder.body(piece) for piece in pieces]
    assert (earlier, last) == ([None] * len(earlier), BREAK_OFF)
    response = builder.response("192.0.2.1", None)
    assert (response.body, response.flags) == (b"x" * 100, ["truncated"])
    assert builder.limit == "size"


def test_body_of_just_the_size_is_whole() -> None:
    """The limit is what a body may have."""
    response = received(b"HTTP/1.1 200 OK", b"Content-Length: 100", body=b"x" * 100, maxsize=100, truncates=True)
    assert (len(response.body), response.flags) == (100, [])


def _padded(count: int, size: int = 0) -> list[bytes]:
    return [b"X-%d: " % number + b"x" * size for number in range(count)]


@pytest.mark.parametrize(
    ("lines", "limit"),
    [
        ([b"HTTP/1.1 200 OK", *_padded(600)], "headers"),
        ([b"HTTP/1.1 200 OK", *_padded(20, 4_000)], "header-bytes"),
        ([b"HTTP/1.1 200 OK", b"X: " + b"x" * 70_000], "header-bytes"),
        ([b"HTTP/1.1 100 Continue", b""] * 300, "headers"),
        ([b"HTTP/1.1 200 OK", b"", *_padded(600)], "headers"),
    ],
    ids=["many", "large", "one", "interim", "trailers"],
)
def test_headers_without_end_break_off(lines: list[bytes], limit: str) -> None:
    """However they come: in one head, in many of interim answers, or behind the body."""
    builder = receiving(*lines)
    assert builder.header(b"X-More: 1\r\n") == BREAK_OFF
    assert isinstance(builder.error, DownloadCancelledError)
    assert builder.limit == limit
    assert limit.upper().replace("-", "_") + "_MAX" in str(builder.error)


def test_headers_as_sites_send_them_pass() -> None:
    """400 of them, or some tens of kilobytes of cookies."""
    assert receiving(b"HTTP/1.1 200 OK", *_padded(400), b"").error is None
    assert receiving(b"HTTP/1.1 200 OK", *_padded(10, 6_000), b"").error is None


# --- signals


def _noting(heard: list[Any], stop: StopDownload | None = None, **more: Any) -> Any:
    def note(**fields: Any) -> None:
        heard.append(fields)
        if stop is not None:
            raise stop

    return note


def test_headers_are_told_before_their_size_is_judged() -> None:
    """A receiver hears of a body that is then refused; it gets what a spider gets."""
    crawler = new_crawler()
    heard: list[Any] = []
    crawler.signals.connect(_noting(heard), signals.headers_received, weak=False)
    lines = (b"HTTP/1.1 200 OK", b"Connection: close", b"Content-Length: 500", b"")
    builder = receiving(*lines, crawler=crawler, maxsize=100)
    assert isinstance(builder.error, DownloadCancelledError)
    [fields] = heard
    assert (dict(fields["headers"]), fields["body_length"]) == ({b"Content-Length": [b"500"]}, 500)
    assert (fields["request"], fields["spider"]) == (builder.request, crawler.spider)


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("signal", [signals.headers_received, signals.bytes_received])
def test_receiver_stops_a_download(signal: object, fail: bool, caplog: pytest.LogCaptureFixture) -> None:
    """What has come until then is the response: handed over, or with the error when it counts as failed."""
    caplog.set_level(logging.DEBUG)
    crawler = new_crawler()
    crawler.signals.connect(_noting([], StopDownload(fail=fail)), signal, weak=False)
    builder = receiving(b"HTTP/1.1 200 OK", crawler=crawler)
    expected = b""
    if signal is signals.headers_received:
        assert builder.header(b"\r\n") == BREAK_OFF
    else:
        builder.header(b"\r\n")
        assert builder.body(b"first") == BREAK_OFF
        expected = b"first"
    assert builder.error is None
    line = f"Download stopped for <GET {URL}> from signal handler _noting.<locals>.note"
    assert line in caplog.messages, "as Scrapy says it"
    if fail:
        with pytest.raises(StopDownload) as caught:
            builder.response("192.0.2.1", None)
        response = caught.value.response
    else:
        response = builder.response("192.0.2.1", None)
    assert response is not None
    assert (response.body, response.flags) == (expected, ["download_stopped"])


def test_receiver_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Its error is logged, as Scrapy does; the next receiver and the page are not hurt."""
    crawler = new_crawler()
    heard: list[bytes] = []

    def broken(**fields: Any) -> None:
        raise LookupError

    crawler.signals.connect(broken, signals.bytes_received, weak=False)
    crawler.signals.connect(lambda data, **_: heard.append(data), signals.bytes_received, weak=False)
    assert received(b"HTTP/1.1 200 OK", crawler=crawler, body=b"page").body == b"page"
    assert heard == [b"page"]
    assert "LookupError" in caplog.text


@pytest.mark.parametrize("status", ["1000 X", "20 OK", "099 X", "abc", "", "-20 X", "2e2"])
def test_a_status_that_is_none_is_no_answer(status: str) -> None:
    """Three digits are a status; the first three of more are another server's mistake, and no page."""
    builder = receiving()
    assert builder.header(f"HTTP/1.1 {status}\r\n".encode()) == BREAK_OFF
    assert isinstance(builder.error, DownloadFailedError)


def test_a_head_beyond_its_limit_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """What refuses it counts as too large, and Scrapy logs no traceback of it."""
    builder = receiving()
    while builder.header(b"X: y\r\n") is None:
        pass
    assert isinstance(builder.error, IgnoreRequest)
    assert error_outcome(builder.error) == "error:too-large"
    said = of_bigcrawl(caplog)
    assert [record.getMessage() for record in said if record.levelname == "WARNING"] == [
        f"{URL} has more lines of headers than BIGCRAWL_HEADERS_MAX"
    ]
    assert all(record.exc_info is None for record in said)
