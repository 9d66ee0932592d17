"""Odd answers are read the same way through a proxy, plain and by tunnel, and so are odd answers of proxies."""

from __future__ import annotations

import socketserver
import ssl
import time
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.downloads.certificate import write_certificate
from tests.support.answers import ROWS
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

# What a proxy answers to CONNECT, in pieces; RFC 9110 9.3.6: any 2xx opens the tunnel, and has no body.
OPENED: dict[str, tuple[bytes, ...]] = {
    "usual": (b"HTTP/1.1 200 Connection established\r\n\r\n",),
    "old": (b"HTTP/1.0 200 OK\r\nProxy-Agent: x\r\n\r\n",),
    "without-a-reason": (b"HTTP/1.1 200\r\n\r\n",),
    "next-to-it": (b"HTTP/1.1 200OK\r\n\r\n",),
    "line-feeds": (b"HTTP/1.1 200 OK\nVia: x\n\n",),
    "empty-lines-before": (b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",),
    "chunked": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",),
    "other-2xx": (b"HTTP/1.1 204 No Content\r\n\r\n",),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    "in-pieces": (b"HT", b"TP/1.1 2", b"00 OK\r\nVia: ", b"x\r\n\r", b"\n"),
    "long-reason": (b"HTTP/1.1 200 " + b"very " * 50 + b"well\r\n\r\n",),
    "no-colon": (b"HTTP/1.1 200 OK\r\nno colon here\r\nX-N\0ul: 1\r\n\r\n",),
    "small-letters": (b"http/1.1 200 ok\r\n\r\n",),
    "Latin-1": (b"HTTP/1.1 200 Ge\xf6ffnet\r\n\r\n",),
}
REFUSED: dict[str, tuple[bytes, ...]] = {
    "forbidden": (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno!\n",),
    "login": (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",),
    "bad-gateway": (b"HTTP/1.1 502 Bad Gateway\r\n\r\n<a href=/no>x</a>",),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\n\r\n",),
    "no-http": (b"SSH-2.0-OpenSSH\r\n\r\n",),
    "nothing": (),
}


class Asked(socketserver.StreamRequestHandler):
    """The proxy, and all servers behind it."""

    server: Proxy

    def handle(self) -> None:
        method, target = self.head()
        host = target.removeprefix("http://").partition("/")[0].partition(":")[0]
        if method == "CONNECT":
            name = host.partition(".")[0]
            for piece in OPENED.get(name, REFUSED.get(name, OPENED["usual"])):
                self.wfile.write(piece)
                time.sleep(0.02)
            if name in REFUSED:
                return
            super().finish()
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            self.setup()
            scheme, (_, path) = "https", self.head()
        else:
            scheme, path = "http", "/" + target.removeprefix("http://").partition("/")[2]
        self.server.asked[scheme, host].append(path)
        row = ROWS[int(host[3:].partition(".")[0])] if host.startswith("row") else ROWS[0]
        self.wfile.write(row.sent)
        if not row.closes:  # who reads it to its end closes the connection
            self.request.settimeout(20)
            self.rfile.read(1)

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        self.request.close()

    def head(self) -> tuple[str, str]:
        method, target, *_ = self.rfile.readline().decode("latin-1").split(" ")
        while self.rfile.readline().strip():
            pass
        return method, target


class Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, pem: Path) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(pem)
        self.asked: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may hang up at any time."""


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_answers_through_a_proxy_are_read_as_without_one(tmp_path: Path, scheme: str) -> None:
    """Of each row the robots.txt is obeyed, and the link of the page is followed."""
    rows = {f"row{number}.example": row.name for number, row in enumerate(ROWS) if row.status < 500}
    tunnels = {f"{name.lower()}.example" for name in OPENED} if scheme == "https" else set()
    closed = {f"{name}.example" for name in REFUSED} if scheme == "https" else set()
    write_certificate(tmp_path / "pem", "127.0.0.1")
    with no_strays_below(tmp_path), at_work(Proxy(tmp_path / "pem")) as proxy:
        settings: dict[str, Any] = {
            "BIGCRAWL_DNS": "proxy",
            "BIGCRAWL_CONTACT": "tests@bigcrawl.org",
            "CHOSEN_PROXY": f"http://127.0.0.1:{proxy.server_address[1]}",
            "DOWNLOADER_MIDDLEWARES": '{"tests.support.servers.chosen_proxy.ChosenProxy": 700}',
            "BIGCRAWL_HOST_DELAY": 0,
            "BIGCRAWL_BACKOFF": 0.1,
            "BIGCRAWL_HOST_FAILURES_MAX": 3,
            "BIGCRAWL_LAST_FAILURES_MAX": 1,
            "BIGCRAWL_PARTITIONS": 2,
            "BIGCRAWL_BUDGET_POLICY": "none",
            "RETRY_ENABLED": False,
            "DOWNLOAD_TIMEOUT": 15,
        }
        seeds = [f"{scheme}://{host}/{path}" for host in (*rows, *tunnels, *closed) for path in ("page", "no")]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run() == 0
            assert "Traceback" not in crawl.log.read_text()
        asked = {host: set(paths) for (by, host), paths in proxy.asked.items() if by == scheme}
        unread = {rows.get(host, host) for host in (*rows, *tunnels) if "/next" not in asked.get(host, ())}
        assert unread == set()
        obeyed = {name for host, name in rows.items() if ROWS[int(host[3:-8])].status == 200}
        disobeyed = {rows.get(host, host) for host, paths in asked.items() if "/no" in paths}
        assert disobeyed.isdisjoint(obeyed | tunnels)
        assert not closed & asked.keys()
