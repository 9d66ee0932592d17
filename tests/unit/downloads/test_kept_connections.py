"""What a server sends beyond an answer is never read as the answer to the next request."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

import pytest
from scrapy import Request

from bigcrawl.downloads.connections import KEPT_MAX, KeptConnections
from tests.integration.downloads.certificate import write_certificate
from tests.unit.downloads.crawlers import handling
from tests.unit.downloads.servers import ok, serving

if TYPE_CHECKING:
    from pathlib import Path

MORE = ok(b"more")
FIRST = {
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "204 with a length": b"HTTP/1.1 204 No Content\r\nContent-Length: %d\r\n\r\n" % len(MORE),
    "304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: %d\r\n\r\n" % len(MORE),
    "206": b"HTTP/1.1 206 Partial\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/9\r\n\r\nfour",
    "no body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
    "chunks and a length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n"
    b"4\r\nfour\r\n0\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("is_at_once", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_more_than_the_answer_is_no_answer(first: bytes, is_at_once: bool) -> None:
    """Neither the next page nor one behind it is given what came beyond the first one."""

    async def scenario() -> None:
        is_read = asyncio.Event()

        async def answer(path: str, writer: asyncio.StreamWriter) -> None:
            if path != "/first":
                writer.write(ok(path.encode()))
                return
            writer.write(first + MORE * is_at_once)
            await is_read.wait()
            writer.write(MORE * (not is_at_once))

        async with serving(answer) as server, handling() as handler:
            response = await handler.download_request(Request(server.url("/first")))
            assert response.body in (b"", b"four")
            is_read.set()
            await asyncio.sleep(0.02)  # over loopback, it has come by then
            for path in ("/second", "/third"):
                response = await handler.download_request(Request(server.url(path)))
                assert response.body == path.encode()
            assert server.paths == ["/first", "/second", "/third"]

    asyncio.run(scenario())


def test_connection_that_its_server_has_closed_is_not_used() -> None:
    """The request is sent once, over a new one."""

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(path.encode()))
        writer.close()

    async def scenario() -> None:
        async with serving(answer) as server, handling() as handler:
            for path in ("/first", "/second"):
                response = await handler.download_request(Request(server.url(path)))
                assert response.body == path.encode()
                await server.until(lambda: server.open == 0)
                await asyncio.sleep(0.02)
            assert server.paths == ["/first", "/second"]

    asyncio.run(scenario())


def test_good_connections_are_kept(tmp_path: Path) -> None:
    """Also those of TLS, whose tickets come beside the first answer."""
    write_certificate(tmp_path / "pem", "127.0.0.9")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pem")
    accepted = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ok())
        writer.close()

    async def scenario() -> None:
        nonlocal accepted
        for scheme, tls in (("http", None), ("https", context)):
            accepted = 0
            async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server, handling() as handler:
                url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
                for _ in range(5):
                    await handler.download_request(Request(url))
            assert accepted == 1

    asyncio.run(scenario())


def test_sockets_are_found_by_both_ends_and_forgotten_when_there_are_too_many() -> None:
    """One that is closed is not kept."""
    kept = KeptConnections()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for port in range(KEPT_MAX + 1):
            kept.record_socket("192.0.2.1", port, ours.fileno())
        kept.record_socket("192.0.2.2", 5, -1)
        assert repr(kept) == f"<KeptConnections {KEPT_MAX}>"
        assert not kept.is_stale("192.0.2.1", 5)
        theirs.send(b"more")
        assert not kept.is_stale("192.0.2.1", 5)  # it is in use
        assert not kept.is_stale("192.0.2.1", 0)
        assert not kept.is_stale("192.0.2.2", 6)
        assert kept.is_stale("192.0.2.1", 6)
