"""A crawl with a scope and filters: the server's log has what they let pass, and each drop is counted and told."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENGLISH = "<p>Bees live in hives and gather honey from the flowers of the meadows around their home.</p>"
GERMAN = "<p>Bienen leben in Stöcken und sammeln Honig von den Blumen auf den Wiesen um ihr Zuhause.</p>"
CHUNK = b"x" * (1 << 20)
CHUNKS = 64
DROPPED = {
    "extension": "/paper.pdf",
    "path": "/calendar/1",
    "directory-depth": "/1/2/3.html",
    "characters": "/find;all",
}
PAGES = {
    "/": "".join(
        f'<a href="{path}">.</a>' for path in (*DROPPED.values(), "/film", "/pdf", "/german", "/closed", "/out", "/2/")
    ),
    "/german": GERMAN + '<a href="/behind-german">.</a>',
    "/closed": 'This site is UNDER construction. <a href="/behind-closed">.</a>',
    "/2/": '<a href="/calendar/open">.</a>',
    "/calendar/open": "",
}
SETTINGS = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 2,
    "DOWNLOAD_MAXSIZE": 2 * CHUNKS * len(CHUNK),
    "BIGCRAWL_FILTER_EXTENSIONS": "non-html",
    "BIGCRAWL_FILTER_PATHS": '["Disallow: /calendar/", "Allow: /calendar/open"]',
    "BIGCRAWL_FILTER_DIRECTORIES_MAX": 1,
    "BIGCRAWL_FILTER_CHARACTERS": ";",
    "BIGCRAWL_FILTER_MEDIA_TYPES": "text/html",
    "BIGCRAWL_FILTER_STRINGS": '["under construction"]',
    "BIGCRAWL_FILTER_LANGUAGES": "en",
}


class Site(BaseHTTPRequestHandler):
    """Pages, a film without an end, and a way out of the host."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []
    elsewhere: ClassVar[str] = ""
    sent: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/film":
            self.film()
        elif self.path == "/out":
            self.answer(302, "", Location=f"{self.elsewhere}/by-redirect")
        elif self.path == "/":
            self.answer(200, f'{ENGLISH}{PAGES["/"]}<a href="{self.elsewhere}/by-link">.</a>')
        elif self.path == "/pdf":
            self.answer(200, f"%PDF-1.4 {ENGLISH}", **{"Content-Type": "no type"})
        elif self.path in PAGES:
            self.answer(200, PAGES[self.path])
        else:
            self.answer(404, "")

    def answer(self, status: int, text: str, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def film(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "video/mp4")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(CHUNKS * len(CHUNK)))
        self.end_headers()
        self.close_connection = True
        for number in range(CHUNKS):
            self.sent[:] = [number]
            try:
                self.wfile.write(CHUNK)
            except OSError:  # the crawler has hung up
                return
        self.sent[:] = [CHUNKS]

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    with (
        at_work(ThreadingHTTPServer(("127.0.0.1", 0), Site)) as server,
        at_work(ThreadingHTTPServer(("127.0.0.2", 0), Site)) as other,
    ):
        Site.asked.clear()
        Site.elsewhere = f"http://127.0.0.2:{other.server_address[1]}"
        yield f"http://127.0.0.1:{server.server_address[1]}"


def test_scope_and_filters_decide_what_is_fetched_and_say_so(tmp_path: Path) -> None:
    """What is dropped is not asked for, an unwanted body is not transferred, and nothing comes of unwanted pages."""
    arguments = {"scope": "host"}
    with (
        no_strays_below(tmp_path),
        serving() as url,
        Crawl(tmp_path / "crawl", [f"{url}/"], SETTINGS, arguments=arguments) as crawl,
    ):
        assert crawl.run(300) == 0
        fetched = {"/", "/robots.txt", "/film", "/pdf", "/german", "/closed", "/out", "/2/", "/calendar/open"}
        assert sorted(Site.asked) == sorted(fetched)
        assert Site.sent[0] < CHUNKS // 2, "what the system's buffers hold, at most"
        log = crawl.log.read_text()
        assert "Traceback" not in log
        for key, count in {**dict.fromkeys(DROPPED, 1), "scope": 2}.items():
            assert f"'bigcrawl/dropped/{key}': {count}," in log, key
        for rule, path in {"media-type": "/pdf", "string": "/closed", "language": "/german"}.items():
            assert f"'bigcrawl/filtered/{rule}': {1 + (rule == 'media-type')}," in log, rule
            outcome = crawl.asked("explain", url + path)["outcome"]
            assert (outcome["name"], outcome["filter"]) == ("status:200", rule)
        found = crawl.frontier("explain", url + DROPPED["path"]).stdout
        assert "path drops it: links to it are not followed" in found


def test_wrong_words_end_the_start_in_one_line(tmp_path: Path) -> None:
    """A scope that does not exist is named with those that do; nothing is fetched, and there is no traceback."""
    with Crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"], arguments={"scope": "hosts"}) as crawl:
        assert crawl.run(300) == 1
        log = crawl.log.read_text()
        assert "BIGCRAWL_SCOPE is 'hosts'; must be one of any, host, pld, prefix, list" in log
        assert log.count(" ERROR: ") == 1
        assert "Traceback" not in log
