"""A crawl goes where a Location or a Refresh leads browsers, byte for byte, and finds there what a link leads to."""

from __future__ import annotations

import socketserver
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.crawling.crawls import Crawl
from tests.support.locations import ROWS, Row
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

HOST = "http://h.example"
HERE = [row for row in ROWS if row.url is not None and row.url.startswith(f"{HOST}/")]
ROBOTS = "/регламент.txt".encode()
RULES = b"User-agent: *\nDisallow: /no\n"


def path_of(url: str) -> str:
    return url.removeprefix(HOST)


def seed_of(number: int, row: Row) -> str:
    """The page of a row; a query of its own changes no join."""
    return f"{path_of(row.base).partition('?')[0]}?row={number}"


SEEDS = {seed_of(number, row): row for number, row in enumerate(HERE)}


class Site(socketserver.StreamRequestHandler):
    """Redirects by its address: 127.0.0.1 by Location, 127.0.0.2 by Refresh."""

    server: Origin

    def handle(self) -> None:
        target = self.rfile.readline().split(b" ")[1].decode("latin-1")
        while self.rfile.readline().strip():
            pass
        self.server.asked[target] += 1
        head, body = self.answer(target)
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        self.wfile.write(b"HTTP/1.1 " + head + b"\r\n" + length + body)

    def answer(self, target: str) -> tuple[bytes, bytes]:
        row = SEEDS.get(target)
        if row is not None and self.server.refreshes:
            return b"200 OK\r\nRefresh: 0;url=" + row.value, b"elsewhere"
        if row is not None:
            return b"302 Found\r\nLocation: " + row.value, b""
        if target == "/robots.txt":
            return b"301 Moved\r\nLocation: " + ROBOTS, b""
        if target == "/links":
            # As a page names them: the same URLs, in UTF-8 where they are beyond ASCII.
            links = [row.value for row in HERE if row.value.isascii() and row.base == ROWS[-1].base]
            body = b"".join(b'<a href="%b"></a>' % value.replace(b'"', b"&quot;") for value in links)
            return b"200 OK\r\nContent-Type: text/html", b'<base href="/dir/page">' + body
        return b"200 OK\r\nContent-Type: text/plain", RULES if "%D1%80" in target else b"ok"


class Origin(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, address: str, *, refreshes: bool) -> None:
        super().__init__((address, 0), Site)
        self.asked: Counter[str] = Counter()
        self.refreshes = refreshes

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.server_address)


def test_crawl_asks_where_browsers_would_ask(tmp_path: Path) -> None:
    """Each target once, whether a redirect, a refresh or a link leads there; and robots.txt is found and obeyed."""
    settings: dict[str, Any] = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2}
    expected = Counter({path_of(str(row.url)) for row in HERE} | set(SEEDS) | {"/links", "/robots.txt"})
    expected["/" + "".join(f"%{byte:02X}" for byte in ROBOTS[1:-4]) + ".txt"] = 1
    with (
        no_strays_below(tmp_path),
        at_work(Origin("127.0.0.1", refreshes=False)) as by_location,
        at_work(Origin("127.0.0.2", refreshes=True)) as by_refresh,
    ):
        origins = (by_location, by_refresh)
        seeds = [origin.url + path for origin in origins for path in (*SEEDS, "/links", "/no")]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run() == 0
            for origin in origins:
                assert (origin.asked - expected, expected - origin.asked) == (Counter(), Counter()), origin.url
            for number in (0, 5, 9, 11):
                row, url = HERE[number], by_location.url
                target = url + path_of(str(row.url))
                found = crawl.asked("explain", url + seed_of(number, row), "--find-page")["page"]
                assert found["redirects_to"] == target
                said = crawl.asked("explain", target)
                assert (said["url"], said["outcome"]["name"]) == (target, "status:200")
