"""Which connections are kept: HTTP/1.0 and 1.1, by RFC 9112 §9.3 and its appendix C.2.2 (002 §3.3.1)."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from scrapy import Request

from tests.unit.downloads.crawlers import handling
from tests.unit.downloads.servers import serving


class Row(NamedTuple):
    """An answer to each of two requests, whether its server closes, what is read, and over how many connections."""

    answer: bytes
    closes: bool
    body: bytes
    connections: int


def row(version: str, *headers: str, body: str = "page", closes: bool = False, over: int) -> Row:
    """An answer with the length of its body."""
    head = (f"HTTP/{version} 200 OK", *headers, f"Content-Length: {len(body)}", "", body)
    return Row("\r\n".join(head).encode(), closes, body.encode(), over)


def raw(answer: str, body: str, *, closes: bool = False, over: int) -> Row:
    """An answer as it is."""
    return Row(answer.replace("\n", "\r\n").encode(), closes, body.encode(), over)


ROWS = {
    # C.2.2: a client that did not ask may be told to keep it all the same.
    "1.0, keep-alive": row("1.0", "Connection: keep-alive", over=1),
    "1.0, Keep-Alive": row("1.0", "Connection: Keep-Alive", over=1),
    "1.0, KEEP-ALIVE": row("1.0", "CONNECTION: KEEP-ALIVE", over=1),
    "1.0, keep-alive with limits": row("1.0", "Connection: Keep-Alive", "Keep-Alive: timeout=5, max=100", over=1),
    "1.0, keep-alive, empty": row("1.0", "Connection: keep-alive", body="", over=1),
    "1.0, keep-alive, 204": raw("HTTP/1.0 204 No Content\nConnection: keep-alive\n\n", "", over=1),
    "1.0, keep-alive, 304": raw("HTTP/1.0 304 Not Modified\nConnection: keep-alive\n\n", "", over=1),
    # 9.3: else it ends with the answer, which is whole by its length, whatever the server does.
    "1.0": row("1.0", over=2),
    "1.0, and the server closes": row("1.0", closes=True, over=2),
    "1.0, close": row("1.0", "Connection: close", over=2),
    "1.0, close, and the server closes": row("1.0", "Connection: close", closes=True, over=2),
    "1.0, limits alone": row("1.0", "Keep-Alive: timeout=5, max=100", over=2),
    "1.0, without a length": raw("HTTP/1.0 200 OK\n\npage", "page", closes=True, over=2),
    "1.0, keep-alive without a length": raw(
        "HTTP/1.0 200 OK\nConnection: keep-alive\n\npage", "page", closes=True, over=2
    ),
    "1.0, an empty answer": raw("HTTP/1.0 200 OK\n\n", "", closes=True, over=2),
    "1.1": row("1.1", over=1),
    "1.1, keep-alive": row("1.1", "Connection: keep-alive", over=1),
    "1.1, close": row("1.1", "Connection: close", over=2),
    "1.1, Close": row("1.1", "connection: Close", over=2),
    "1.1, close, and the server closes": row("1.1", "Connection: close", closes=True, over=2),
    "1.1, closes without a word": row("1.1", closes=True, over=2),
    "1.1, chunks": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n4\npage\n0\n\n", "page", over=1),
    "1.1, chunks, close": raw(
        "HTTP/1.1 200 OK\nConnection: close\nTransfer-Encoding: chunked\n\n4\npage\n0\n\n", "page", over=2
    ),
    "1.1, 204": raw("HTTP/1.1 204 No Content\n\n", "", over=1),
    "1.1, 304": raw("HTTP/1.1 304 Not Modified\n\n", "", over=1),
    "1.1, without a length": raw("HTTP/1.1 200 OK\n\npage", "page", closes=True, over=2),
    # RFC 9112 §6.1: 1.0 knows no chunks; read, and not kept.
    "1.0, chunks": raw("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n4\npage\n0\n\n", "page", closes=True, over=2),
    # What comes beyond an answer is no answer to the next request.
    "1.0, keep-alive, and more": raw(
        "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 4\n\npagemore", "page", over=2
    ),
    "1.1, and more": raw("HTTP/1.1 200 OK\nContent-Length: 4\n\npagemore", "page", over=2),
    "100, then 1.0, keep-alive": raw(
        "HTTP/1.1 100 Continue\n\nHTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 4\n\npage", "page", over=1
    ),
}


@pytest.mark.parametrize("one", ROWS.values(), ids=ROWS)
def test_answer_is_read_at_once_and_its_connection_kept_or_not(one: Row) -> None:
    """Nobody waits for the end of a connection whose answer is whole; and none is used that was to end."""

    async def scenario() -> None:
        async def answer(_path: str, writer: asyncio.StreamWriter) -> None:
            writer.write(one.answer)
            await writer.drain()
            if one.closes:
                writer.close()

        async with serving(answer) as server, handling() as handler, asyncio.timeout(45):
            for _ in range(2):
                page = await handler.download_request(Request(server.url(), meta={"download_timeout": 60}))
                assert page.body == one.body
            assert server.accepted == one.connections

    asyncio.run(scenario())
