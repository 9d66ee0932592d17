"""A host whose answers have odd heads, lengths or packings is crawled, and its robots.txt is obeyed."""

from __future__ import annotations

import socketserver
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tests.support.answers import ROWS, Row
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [row for row in ROWS if row.status == 200]


class Odd(socketserver.StreamRequestHandler):
    """The same answer to each request, robots.txt included."""

    server: Origin

    def handle(self) -> None:
        line = self.rfile.readline()
        if not line:
            return
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(line.split(b" ")[1].decode("latin-1"))
        self.wfile.write(self.server.row.sent)


class Origin(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, number: int, row: Row) -> None:
        super().__init__((f"127.0.1.{number + 1}", 0), Odd)
        self.row = row
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.server_address)


def test_hosts_with_odd_answers_are_crawled_and_obeyed(tmp_path: Path) -> None:
    """Each host's page is read with its links, and what its robots.txt forbids is not asked for."""
    settings: dict[str, Any] = {
        "BIGCRAWL_BACKOFF": 0.2,
        "BIGCRAWL_BACKOFF_MAX": 1,
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_PARTITIONS": 2,
    }
    with ExitStack() as stack:
        stack.enter_context(no_strays_below(tmp_path))
        origins = [stack.enter_context(at_work(Origin(number, row))) for number, row in enumerate(PAGES)]
        seeds = [origin.url + path for origin in origins for path in ("/", "/no")]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run() == 0
    found = {origin.row.name: set(origin.asked) for origin in origins}
    assert {name: asked for name, asked in found.items() if asked != {"/robots.txt", "/", "/next"}} == {}
