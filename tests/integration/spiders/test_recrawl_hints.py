"""What sites say of their pages in sitemaps: it decides about the first visits, and brings later ones sooner."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl_simweb.basics.resources import Kind
from tests.integration.spiders.test_recrawl import SETTINGS
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.long("waits for several visits; test_recrawl and the sitemap of one page here have the same")
def test_pages_are_visited_again_as_their_sitemaps_say(tmp_path: Path) -> None:
    """News come before pages of which nothing is said; so does a liar, and not before an eighth of the usual wait."""
    revisits = {"BIGCRAWL_REVISIT": "change-rate", "BIGCRAWL_REVISIT_SECONDS": 24, "BIGCRAWL_REVISIT_VISITS_MAX": 2}
    visits: dict[str, dict[Kind, list[list[int]]]] = defaultdict(lambda: defaultdict(list))
    with SimulatedWeb(tmp_path / "web", hosts=3, pages=4, features="changes,sitemaps") as web:
        with Crawl(tmp_path / "crawl", web.seeds, {**SETTINGS, **revisits}, spider="sitemap") as crawl:
            assert crawl.run() == 0, crawl.log.read_text()[-4000:]
            assert " ERROR: " not in crawl.log.read_text()
        times: dict[str, list[int]] = defaultdict(list)
        for each in sorted(web.exchanges(), key=lambda exchange: exchange.start_ms):
            if each.target != "/robots.txt":
                times[f"http://{each.host}:{web.saved.port}{each.target}"].append(each.start_ms)
        for url, at_ms in times.items():
            resource = web.web.resource_at(url)
            assert resource is not None
            visits[web.web.name_of(resource.host)][resource.kind].append(at_ms)
    liar, honest = (visits[web.web.name_of(host)] for host in (1, 2))
    assert len(honest[Kind.MAPPED]) == len(liar[Kind.MAPPED]) == 6
    for soon, late in (
        (honest[Kind.NEWS], honest[Kind.PAGE] + honest[Kind.MAPPED]),
        (liar[Kind.NEWS] + liar[Kind.MAPPED], liar[Kind.PAGE]),
    ):
        # On a busy machine some first visits come long before others.
        assert max(map(waited_ms, soon)) < min(map(waited_ms, late))
        assert min(map(waited_ms, soon)) >= 24_000 / 8 - 1_000


def waited_ms(visits_ms: list[int]) -> int:
    """Between the two visits of a page."""
    first_ms, second_ms = visits_ms
    return second_ms - first_ms


class Origin:
    """A site with a sitemap that says from its second reading on that one of its pages has just changed."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                origin.asked.append(self.path)
                kind, body = origin.answer(self.path)
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[str, bytes]:
        """The media type and body at a path; empty for nothing."""
        match path:
            case "/robots.txt":
                return "text/plain", f"Sitemap: {self.url}/sitemap.xml\n".encode()
            case "/sitemap.xml":
                is_news = self.asked.count(path) > 1
                changed = datetime.now(UTC).isoformat(timespec="seconds") if is_news else "2020-01-01"
                rows = (("/", ""), ("/told", changed), ("/untold", "2020-01-01"))
                return "application/xml", f"<urlset>{''.join(entry(self.url + at, date) for at, date in rows)}".encode()
            case "/" | "/told" | "/untold":
                return "text/html", f"page {path}".encode()
            case _:
                return "", b""


def entry(url: str, changed: str) -> str:
    return f"<url><loc>{url}</loc><changefreq>yearly</changefreq><lastmod>{changed}</lastmod></url>"


@pytest.fixture
def origin() -> Iterator[Origin]:
    served = Origin()
    with at_work(served.server):
        yield served


def test_a_page_that_its_sitemap_calls_changed_is_visited_before_it_is_due(origin: Origin, tmp_path: Path) -> None:
    """Its neighbour, of which the same is said but for that, still waits, for eight times as long."""
    arguments = {"policy": "change-rate", "every": "20", "sitemaps": "1"}
    crawl = Crawl(tmp_path / "crawl", [origin.url + "/"], SETTINGS, arguments=arguments, spider="recrawl")
    with no_strays_below(tmp_path), crawl:
        crawl.start()
        began_s = time.monotonic()
        wait_until(lambda: origin.asked.count("/told") > 1, "the page is visited again", timeout_s=120)
        if time.monotonic() - began_s < 100:  # else the machine stood still, and its neighbour may be due, too
            assert origin.asked.count("/untold") == 1
        assert origin.asked.count("/sitemap.xml") > 1


@pytest.mark.long("waits for several visits; the sitemap of one page here has the same")
def test_feeds_are_read_again_and_announce_what_has_changed(tmp_path: Path) -> None:
    """A feed that has changed is parsed again, so its news are items again; all pages have their visits."""
    items = tmp_path / "items.jsonl"
    revisits: dict[str, Any] = {
        "BIGCRAWL_REVISIT": "change-rate",
        "BIGCRAWL_REVISIT_SECONDS": 16,
        "BIGCRAWL_REVISIT_VISITS_MAX": 2,
    }
    revisits["BIGCRAWL_REVISIT_SECONDS_MIN"] = 11  # long enough for news that change once in each five seconds
    settings = {**SETTINGS, **revisits, "FEEDS": json.dumps({str(items): {"format": "jsonlines"}})}
    with SimulatedWeb(tmp_path / "web", hosts=2, pages=4, features="changes,feeds") as web:
        with Crawl(tmp_path / "crawl", web.seeds, settings, spider="feeds") as crawl:
            assert crawl.run() == 0, crawl.log.read_text()[-4000:]
        asked = Counter((each.host, each.target) for each in web.exchanges() if each.target != "/robots.txt")
        kinds = {page: web.web.resource_at(f"http://{page[0]}{page[1]}") for page in asked}
    assert set(asked.values()) == {2}
    assert Counter(resource.kind for resource in kinds.values() if resource) == Counter(
        {Kind.PAGE: 2, Kind.FEED: 4, Kind.ANNOUNCED: 12, Kind.NEWS: 4}
    )
    announced = Counter((item["feed"], item["url"]) for item in map(json.loads, items.read_text().splitlines()))
    assert set(announced.values()) == {2}, "all entries of a feed that has changed"
