"""What pages need to be shown is fetched soon after them, once, and is no page of the crawl."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import wait_until
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 12
SHARED = ("style.css", "more.css", "back.png", "icon.ico", "app.js", "moved.png", "there.png")
"""What all pages need; two of the files are found in another, and one by a redirect."""
OWN = ("a.png", "b.png", "small.png")
TYPES = {"css": "text/css", "png": "image/png", "js": "text/javascript", "ico": "image/x-icon"}
FILES = {
    "/style.css": b"@import 'more.css'; @font-face {src: url(/private/font.woff2)}",
    "/more.css": b"body {background: url(back.png)}",
}
SPIDER = """
from bigcrawl.spiders.broad import BroadSpider

class Noting(BroadSpider):
    name = "noting"

    async def parse(self, response, **kwargs):
        yield {"path": response.url.rpartition("/")[2]}
        async for output in super().parse(response, **kwargs):
            yield output
"""
SETTINGS = {
    "BIGCRAWL_HOST_DELAY": 0.1,
    "BIGCRAWL_PARTITIONS": 1,
    "BIGCRAWL_REQUISITES": "host",
    "BIGCRAWL_BUDGET_POLICY": "none",
}


def page(number: int) -> bytes:
    """A page with files of its own; the first links to all others, and to a picture that is no part of it."""
    own = f"<img src=/{number}/a.png srcset='/{number}/b.png 2x'><p style='background: url(/{number}/small.png)'>"
    found = "" if number else "".join(f"<a href=/{to}/page.html>.</a>" for to in range(1, PAGES))
    head = "<link rel=stylesheet href=/style.css><link rel=icon href=/icon.ico><script src=/app.js></script>"
    far = "<img src=http://127.0.0.99:1/far.png><img src=/moved.png><a href=/linked.png>.</a>"
    return f"<!doctype html><title>{number}</title>{head}{own}{far}{found}".encode()


class Site(BaseHTTPRequestHandler):
    """Pages with files of their own and files of all."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        body = FILES.get(self.path, b"x")
        ending = self.path.rpartition(".")[2]
        if self.path == "/robots.txt":
            body = b"User-agent: *\nDisallow: /private/\n"
        elif ending == "html":
            body = page(int(self.path.split("/")[1]))
        self.send_response(302 if self.path == "/moved.png" else 200)
        if self.path == "/moved.png":
            self.send_header("Location", "/there.png")
        self.send_header("Content-Type", TYPES.get(ending, "text/html"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Site)
        self.asked: list[str] = []

    @property
    def seeds(self) -> list[str]:
        return [f"http://127.0.0.1:{self.server_address[1]}/0/page.html"]


def has_asked(server: Server, times: int) -> bool:
    return len(server.asked) >= times


def expected() -> Counter[str]:
    pages = [f"/{number}/page.html" for number in range(PAGES)]
    own = [f"/{number}/{name}" for number in range(PAGES) for name in OWN]
    return Counter(["/robots.txt", "/linked.png", *pages, *own, *(f"/{name}" for name in SHARED)])


def distances(asked: list[str]) -> list[int]:
    """How many fetches are between each page and the last of its own files."""
    at = {path: place for place, path in enumerate(asked)}
    return [max(at[f"/{n}/{name}"] for name in OWN) - at[f"/{n}/page.html"] for n in range(PAGES)]


@pytest.mark.long("keeps a delay that a step is short to; tests/unit/features/requisites reads pages and offers them")
def test_requisites_are_fetched_soon_after_their_page_and_once(tmp_path: Path) -> None:
    """Within their scope and robots.txt; the spider gets pages alone, a filter of media types leaves requisites."""
    (tmp_path / "noting_spider.py").write_text(SPIDER)
    feed = tmp_path / "items.jsonl"
    settings = SETTINGS | {
        "SPIDER_MODULES": "noting_spider",
        "FEEDS": f'{{"{feed}": {{"format": "jsonlines"}}}}',
        "BIGCRAWL_FILTER_MEDIA_TYPES": "text/html",
        "DEPTH_LIMIT": 1,  # that of the pages, whose requisites are no deeper
    }
    with at_work(Server()) as server:
        with Crawl(
            tmp_path / "crawl", server.seeds, settings, spider="noting", environment={"PYTHONPATH": str(tmp_path)}
        ) as crawl:
            assert crawl.run(300) == 0
            log = crawl.log.read_text()
        assert Counter(server.asked) == expected()
        assert sum(distances(server.asked)) / PAGES < 2 * PAGES  # in their place in line, 2.5 times as many
    items = [json.loads(line) for line in feed.read_text().splitlines()]
    assert sorted(item["path"] for item in items) == ["page.html"] * PAGES
    assert "Traceback" not in log
    notes = notes_in(tmp_path / "crawl" / "warc")
    assert {notes[path] for path in notes if path.endswith(".html")} == {""}
    assert (notes["/0/a.png"], notes["/1/a.png"], notes["/style.css"]) == ("E", "LE", "E")
    assert (notes["/more.css"], notes["/back.png"]) == ("EE", "EEE")


def notes_in(warc: Path) -> dict[str, str]:
    """The way from a seed to each stored URL, of those that are parts of pages."""
    found = {}
    for path in warc.glob("*.warc.gz"):
        for record in gzip.decompress(path.read_bytes()).split(b"WARC/1.1\r\n"):
            if b"WARC-Type: metadata" in record:
                fields = dict(line.split(": ", 1) for line in record.decode().splitlines() if ": " in line)
                target = "/" + fields["WARC-Target-URI"].split("/", 3)[3]
                found[target] = fields.get("hopsFromSeed", "")
    return found


@pytest.mark.long(
    "three kills; tests/fault kills crawls at random, and to the frontier requisites are URLs like others"
)
def test_requisites_survive_kill(tmp_path: Path) -> None:
    """A crawl that is killed amid them fetches the others at its next start, each once but those under way."""
    with at_work(Server()) as server, Crawl(tmp_path / "crawl", server.seeds, SETTINGS) as crawl:
        for asked in (10, 22, 34):
            crawl.start()
            wait_until(partial(has_asked, server, asked), "it fetches")
            crawl.kill()
        assert crawl.run(300) == 0
        found = Counter(server.asked)
    assert set(found) == set(expected())
    assert found.total() - expected().total() <= 3 * 4  # in flight, and robots.txt


def test_without_the_setting_nothing_is_fetched(tmp_path: Path) -> None:
    settings = SETTINGS | {"BIGCRAWL_REQUISITES": "off"}
    with at_work(Server()) as server, Crawl(tmp_path / "crawl", server.seeds, settings) as crawl:
        assert crawl.run(300) == 0
        assert not {path for path in server.asked if path.endswith((".css", ".js", "a.png"))}


def test_wrong_scope_ends_the_start_in_one_line(tmp_path: Path) -> None:
    with Crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"], {"BIGCRAWL_REQUISITES": "site"}) as crawl:
        assert crawl.run(300) == 1
        log = crawl.log.read_text()
    assert "BIGCRAWL_REQUISITES is 'site'; must be one of off, host, pld, any" in log
    assert "Traceback" not in log
