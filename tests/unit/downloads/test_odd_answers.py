"""Answers with odd heads, lengths and packings are read as browsers read them, and at a bounded cost."""

from __future__ import annotations

import asyncio
import gzip
import io
import ssl
import sys
import zlib
from contextlib import suppress
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError, ResponseDataLossError
from scrapy.http import Response

from bigcrawl.downloads.odd_answers import OddAnswer
from bigcrawl.downloads.packing import PARTS_MAX, is_whole
from bigcrawl.downloads.response_builder import SMALL_PIECES_MAX
from bigcrawl.middlewares.compression import CompressionMiddleware
from tests.integration.downloads.certificate import write_certificate
from tests.support.answers import HTML, ROWS, Row
from tests.support.costs.proportion import assert_costs
from tests.support.running.tables import each
from tests.support.sizes import examples
from tests.unit.downloads.crawlers import handling, new_crawler
from tests.unit.downloads.servers import sends, serving
from tests.unit.downloads.test_response_builder import receiving

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

BROKEN = (
    *(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"220 ready\r\n", b"\0" * 100, b"junk\r\nHTTP/1.1 200 OK\r\n\r\n"),
    *(b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Half", b"HTTP", b"\r\n", b""),
)


async def fetched(sent: bytes, crawler: Crawler, *, closes: bool = True, **meta: Any) -> Response:
    """What the spider gets of a server that answers so each time: at the second try, if the first one failed."""
    async with serving(sends(sent, closes=closes)) as server, handling(crawler) as handler, asyncio.timeout(120):
        request = Request(server.url("/page"), meta=meta)
        try:
            response = await handler.download_request(request)
        except (DownloadFailedError, ResponseDataLossError):
            response = await handler.download_request(request)
    unpacked = CompressionMiddleware.from_crawler(crawler).process_response(request, response)
    assert isinstance(unpacked, Response)
    return unpacked


@each("row", ROWS, ids=lambda row: row.name)
def test_answer_is_read_as_browsers_read_it(row: Row) -> None:
    """By libcurl, or by our own reader where libcurl gives up; nothing counts as lost."""
    response = asyncio.run(fetched(row.sent, new_crawler(), closes=row.closes))
    assert (response.status, response.body) == (row.status, row.body)
    assert set(response.flags) <= {"partial"}


@pytest.mark.parametrize("step", [1, 7])
@each("row", ROWS, ids=lambda row: row.name)
def test_pieces_of_an_answer_are_the_answer(row: Row, step: int) -> None:
    """However the network cuts it."""
    whole, cut = read(row.sent), read(row.sent, step)
    assert (cut.status, cut.body, cut.headers) == (whole.status, whole.body, whole.headers)


def read(sent: bytes, step: int = 1 << 20) -> Response:
    """Our own reader's response."""
    builder = receiving()
    answer = OddAnswer(builder)
    if not any(answer.feed(sent[at : at + step]) for at in range(0, len(sent), step)):
        answer.end_of_connection()
    if builder.error is not None:
        raise builder.error
    response = builder.response("192.0.2.1", None)
    if answer.loss:
        response.flags.append(answer.loss)
    return response


@pytest.mark.parametrize("sent", BROKEN)
def test_what_is_no_answer_is_a_failure(sent: bytes) -> None:
    """Another protocol, half a head, a status that is none."""
    with pytest.raises(DownloadFailedError):
        asyncio.run(fetched(sent, new_crawler()))
    with pytest.raises(DownloadFailedError):
        read(sent)


LOST = {
    "length": b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 9\r\n\r\nfour",
    "chunk": b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nfour",
    "no last chunk": b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n",
    "long chunk": b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour and more\r\n0\r\n\r\n",
    "no chunk": b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\nfour and more\r\n",
    "no size": b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\n;a=b\r\n",
    "extension without a size": b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\n;a=b\r\n\r\n",
    "half a second frame": b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 999\r\n\r\n"
    + zstd.compress(HTML)
    + zstd.compress(HTML)[:-9],
    "half a gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999\r\n\r\n"
    + gzip.compress(HTML)[:-9],
    "half a second gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999\r\n\r\n"
    + gzip.compress(HTML)
    + gzip.compress(HTML)[:-9],
}


@pytest.mark.parametrize("sent", LOST.values(), ids=LOST)
def test_lost_data_is_lost_for_every_reader(sent: bytes) -> None:
    """As Scrapy has it: an error, or a flag."""
    with pytest.raises(ResponseDataLossError):
        asyncio.run(fetched(sent, new_crawler()))
    kept = asyncio.run(fetched(sent, new_crawler(DOWNLOAD_FAIL_ON_DATALOSS=False)))
    assert "dataloss" in kept.flags


@pytest.mark.parametrize("more", [b"", b"no colon\r\n"])
def test_packed_page_that_is_whole_is_whole_when_time_is_up(more: bytes) -> None:
    """The server waits for somebody to read more, and so does whoever believes its length."""
    head = b"HTTP/1.1 200 OK\r\n" + more + b"Content-Encoding: gzip\r\nContent-Length: 999999\r\n\r\n"
    half = gzip.compress(HTML)[:-1]
    response = asyncio.run(fetched(head + gzip.compress(HTML), new_crawler(), closes=False, download_timeout=1))
    assert (response.body, response.flags) == (HTML, [])
    with pytest.raises(DownloadTimeoutError):
        asyncio.run(fetched(head + half, new_crawler(), closes=False, download_timeout=1, download_truncate=False))


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n"])
@pytest.mark.parametrize("truncate", [True, False])
def test_page_without_a_length_is_whole_when_its_server_has_fallen_silent(head: bytes, truncate: bool) -> None:
    """The server keeps the connection, and nothing tells the end: by libcurl and by our own reader."""
    meta = {"download_timeout": 1, "download_truncate": truncate}
    response = asyncio.run(fetched(head + b"\r\n" + HTML, new_crawler(), closes=False, **meta))
    assert (response.body, response.flags) == (HTML, ["partial"])


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n"])
def test_page_without_a_length_that_still_comes_is_not_whole(head: bytes) -> None:
    """So half a robots.txt allows nothing."""

    async def drip(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"\r\n")
        while True:
            writer.write(b".")
            await asyncio.sleep(0.01)

    async def scenario() -> None:
        async with serving(drip) as server, handling() as handler:
            meta = {"download_timeout": 2, "download_truncate": True}
            for _ in range(2):
                with suppress(DownloadFailedError):
                    response = await handler.download_request(Request(server.url(), meta=meta))
            assert "truncated-time" in response.flags

    asyncio.run(scenario())


def test_request_to_an_odd_server_is_that_of_libcurl() -> None:
    """Line for line, but that the connection is not kept."""

    async def scenario() -> None:
        headers = {"X-Empty": "", "X-Twice": ["one", "two"], "DNT": "1", "X-Bytes": b"\xff", "User-Agent": "me"}
        odd = sends(b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n")
        async with serving(odd) as server, handling() as handler:
            request = Request(server.url("/a?b#c"), headers=headers)
            with pytest.raises(DownloadFailedError):
                await handler.download_request(request)
            await handler.download_request(request)
            first, second = (head.rstrip(b"\r\n").split(b"\r\n") for head in server.heads)
            assert first[0] == second[0] == b"GET /a?b HTTP/1.1"
            assert sorted([*first, b"Connection: close"]) == sorted(second)

    asyncio.run(scenario())


def test_odd_server_is_read_over_tls(tmp_path: Path) -> None:
    """Its certificate is with the response, as with libcurl, and not verified."""
    write_certificate(tmp_path / "pem", "127.0.0.9")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pem")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nsecret")
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server, handling() as handler:
            request = Request(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            with pytest.raises(DownloadFailedError):
                await handler.download_request(request)
            response = await handler.download_request(request)
            assert (response.body, str(response.ip_address)) == (b"secret", "127.0.0.1")
            assert response.certificate is not None

    asyncio.run(scenario())


# --- against another reader

NAMES = st.sampled_from(["X-One", "X-Two", "ETag", "Content-Type"])
VALUES = st.text(st.sampled_from("az09 ,;=\"'"), max_size=8).map(str.strip)
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
BODIES = st.lists(st.binary(min_size=1, max_size=40), max_size=4)
SPACES = st.sampled_from(["", " ", "\t"])


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """Answers that both readers must read alike."""
    pieces, headers = draw(BODIES), draw(HEADERS)
    end = draw(st.sampled_from(["\r\n", "\n"]))
    lines = [f"HTTP/1.{draw(st.integers(0, 1))} {draw(st.sampled_from([200, 206, 404, 503]))} Fine"]
    lines += [f"{name}:{draw(SPACES)}{value}{draw(SPACES)}" for name, value in headers]
    body = b"".join(pieces)
    match draw(st.sampled_from(["length", "chunks", "end"])):
        case "length":
            lines.append(f"Content-Length: {len(body)}")
            body += draw(st.sampled_from([b"", b"more"]))
        case "chunks":
            lines.append("Transfer-Encoding: chunked")
            extension = draw(st.sampled_from([b"", b";a=b", b" "]))
            body = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n\r\n"
        case _:
            lines.append("Connection: close")
    return end.join([*lines, "", ""]).encode() + body


class Wire:
    """A socket that has received these bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


@settings(max_examples=examples(500))
@given(answers(), st.integers(1, 50))
def test_good_answers_are_read_as_by_the_standard_library(sent: bytes, step: int) -> None:
    """Status, headers and body, whatever frames it."""
    other: Any = HTTPResponse(Wire(sent))  # type: ignore[arg-type]
    other.begin()
    ours = read(sent, step)
    assert (ours.status, ours.body) == (other.status, other.read())
    for name in ("X-One", "X-Two", "ETag", "Content-Type"):
        told = [value.decode() for value in ours.headers.getlist(name)]
        assert told == [value.strip() for value in other.headers.get_all(name) or []]


@settings(max_examples=examples(500))
@given(st.sampled_from([row.sent for row in ROWS]), st.data())
def test_no_bytes_break_the_reader(sent: bytes, data: st.DataObject) -> None:
    """Whatever is changed in an answer, it is read, or refused as none."""
    changed = bytearray(sent[:400])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3)) or b"\n"
    builder = receiving()
    answer = OddAnswer(builder)
    try:
        answer.feed(bytes(changed))
        answer.end_of_connection()
    except DownloadFailedError:
        return
    assert builder.error is None or isinstance(builder.error, DownloadFailedError)


# --- cost

HEAD = b"HTTP/1.1 200 OK\r\nno colon\r\n"
COSTLY = {
    "tiny chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * (2 * SMALL_PIECES_MAX),
    "empty lines": b"\r\n" * 200_000,
    "long line": HEAD + b"X: " + b"x" * 2_000_000,
    "folded lines": HEAD + b"X: x\r\n" + b" x\r\n" * 200_000,
    "interim heads": b"HTTP/1.1 100 Continue\r\n\r\n" * 50_000,
    "long status": b"HTTP/" + b"9" * 2_000_000,
    "zeros of a size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 2_000_000,
    "nameless lines": HEAD + b"?\n" * 500_000,
}


@pytest.mark.parametrize("step", [100, 1 << 16])
@pytest.mark.parametrize("sent", COSTLY.values(), ids=COSTLY)
def test_costly_answers_are_bounded(sent: bytes, step: int) -> None:
    """They cost in proportion to their bytes, and are over at a limit."""

    def fed(size: int) -> bool:
        builder = receiving()
        answer = OddAnswer(builder)
        try:
            if any(answer.feed(sent[at : min(at + step, size)]) for at in range(0, size, step)):
                return True
        except DownloadFailedError:
            return True
        return bool(answer.loss or builder.error is not None or builder.limit)

    assert fed(len(sent))
    assert_costs(24, lambda: fed(len(sent)), lambda: fed(len(sent) // 8))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_bomb_is_not_judged(pack: Any) -> None:
    """Each is whole, and is not called so: only so much is unpacked to see its end. Many small members count, too."""
    bombs = (pack(bytes(80 << 20)), gzip.compress(b"") * 800_000, zstd.compress(b"") * 800_000)
    assert not any(is_whole([b"gzip"], bomb) for bomb in bombs)
    assert is_whole([b"gzip"], gzip.compress(b"") * PARTS_MAX)
    assert is_whole([b"zstd"], zstd.compress(b"") * PARTS_MAX)
