"""A broad crawl that also follows what pages embed, by a setting."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from tests.support.crawling.crawls import Crawl
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (
    "<a href=/page>.</a><img src=/picture srcset='/small 1x, /large 2x'><script src=/program></script>"
    "<form action=/search></form><svg><a xlink:href=/drawn>.</a></svg><a href='/unclosed'<a href='/next'>.</a>"
)
ELEMENTS = "img,srcset,script"
SPIDER = """
from bigcrawl.spiders.broad import BroadSpider

class Kinds(BroadSpider):
    name = "kinds"

    async def parse(self, response, **kwargs):
        yield {"path": response.url.rpartition("/")[2], "element": response.meta.get("bigcrawl_element", "")}
        async for output in super().parse(response, **kwargs):
            yield output
"""


class Site(BaseHTTPRequestHandler):
    """One page with all kinds of references, and whatever it refers to."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = PAGE.encode() if self.path == "/" else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_elements_of_a_setting_are_followed_and_named(tmp_path: Path) -> None:
    """The others are not, and each request says where it comes from."""
    Site.asked.clear()
    (tmp_path / "kinds_spider.py").write_text(SPIDER)
    feed = tmp_path / "items.csv"
    settings = {
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_PARTITIONS": 2,
        "BIGCRAWL_LINK_ELEMENTS": ELEMENTS,
        "SPIDER_MODULES": "kinds_spider",
        "FEEDS": f'{{"{feed}": {{"format": "csv"}}}}',
    }
    with at_work(ThreadingHTTPServer(("127.0.0.1", 0), Site)) as server:
        seeds = [f"http://127.0.0.1:{server.server_address[1]}/"]
        environment = {"PYTHONPATH": str(tmp_path)}
        with Crawl(tmp_path / "crawl", seeds, settings, spider="kinds", environment=environment) as crawl:
            assert crawl.run(300) == 0
    pages = {"/", "/page", "/unclosed", "/next"}
    embedded = {"/picture": "img", "/small": "srcset", "/large": "srcset", "/program": "script"}
    assert sorted(Site.asked) == sorted({"/robots.txt", *pages, *embedded})
    rows = dict(line.split(",") for line in feed.read_text().split()[1:])
    assert rows == {path[1:]: embedded.get(path, "") for path in (*pages, *embedded)}


def test_element_without_references_ends_the_start_in_one_line(tmp_path: Path) -> None:
    """It is named with those that there are."""
    with Crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"], {"BIGCRAWL_LINK_ELEMENTS": "img,blink"}) as crawl:
        assert crawl.run(300) == 1
        log = crawl.log.read_text()
        assert "BIGCRAWL_LINK_ELEMENTS has blink; it may have applet, embed, form, img" in log
        assert "Traceback" not in log
