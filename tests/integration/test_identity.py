"""A crawl without a contact: what it asks, what it does not, and how it ends."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PUBLIC = "http://11.0.0.1/"  # as good as any: it is not to be asked
MAIL = "me@uni-somewhere.de"


class Page(BaseHTTPRequestHandler):
    """Links to a public address; keeps what it was asked with."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Origin)
        self.server.asked.append((self.path, self.headers["User-Agent"], self.headers["From"]))
        body = b'<a href="%s">.</a><a href="/more">.</a>' % self.server.link.encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Origin(ThreadingHTTPServer):
    daemon_threads = True
    link = "/"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.asked: list[tuple[str, str, str | None]] = []


@contextmanager
def serving(link: str) -> Iterator[Origin]:
    with at_work(Origin()) as server:
        server.link = link
        yield server


def test_nameless_crawl_ends_before_the_first_public_address(tmp_path: Path) -> None:
    """It says why, once, with exit status 1; its own machine it may crawl. The URL waits for a crawl with a name."""
    settings = {"BIGCRAWL_HOST_DELAY": 0.1, "BIGCRAWL_PARTITIONS": 2, "BIGCRAWL_SERVER_DELAY": 0.05}
    with no_strays_below(tmp_path), serving(PUBLIC) as server:
        seeds = [f"http://127.0.0.1:{server.server_address[1]}/"]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            for _ in range(2):  # the second time as soon as the URL is taken again
                assert crawl.run(300) == 1
                log = crawl.log.read_text()
                assert log.count("set BIGCRAWL_CONTACT") == 1
                assert "Traceback" not in log
            assert {path for path, _, _ in server.asked} >= {"/robots.txt", "/"}


def test_crawl_says_who_it_is(tmp_path: Path) -> None:
    """With every request, that for robots.txt included."""
    settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2, "BIGCRAWL_CONTACT": MAIL}
    with no_strays_below(tmp_path), serving("/other") as server:
        seeds = [f"http://127.0.0.1:{server.server_address[1]}/"]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run(300) == 0
            assert {path for path, _, _ in server.asked} == {"/robots.txt", "/", "/more", "/other"}
            assert {(agent, sender) for _, agent, sender in server.asked} == {(f"bigcrawl/0.1 (+{MAIL})", MAIL)}
