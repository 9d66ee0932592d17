"""One file of rules by site: the server's log, the stored pages and the copies are what it says."""

from __future__ import annotations

import gzip
import json
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from bigcrawl.url.canonical import host_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.everything import stored
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: dict[str, Any] = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 2,
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
    "BIGCRAWL_CONTENT_SEEN": "exact",
}
RULES = """
# name                    what is set by hand
127.16.0.2                budget=0                 # is not fetched
127.16.0.3                eliminate="Page 2 of" delay=0.01 priority=50
127.16.0.4/topic-0/       kinds=text/plain         # its pages are not seen, and lead nowhere
re:/archive/              depth=1                  # deeper ones wait
"""
TEXT = "page 2 of"


def test_each_site_is_crawled_by_its_rule(tmp_path: Path) -> None:
    """What is fetched, what is stored, and what is counted as dropped."""
    (tmp_path / "rules.txt").write_text(RULES)
    settings = {**SETTINGS, "BIGCRAWL_RULES": tmp_path / "rules.txt"}
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=6, pages=6) as web:
        port, seeds = web.saved.port, web.seeds[:1]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run(600) == 0
            kept = stored(crawl.directory / "warc")
            dropped = json.loads(json.dumps(crawl.asked("budget", "127.16.0.4/topic-0/x")))
        assert dropped["rule_of_settings"] is None
        waiting, known, eliminated, unseen = deque(seeds), set(seeds), set(), set()
        while waiting:
            url = waiting.popleft()
            answer = web.web.answer(host_of(url), url.partition(f":{port}")[2], port)
            is_html = b"html" in answer.body[:200].lower()
            if host_of(url) == "127.16.0.3" and TEXT in answer.body.decode(errors="replace").lower():
                eliminated.add(url)
            elif "127.16.0.4" in url and "/topic-0/" in url and is_html:
                unseen.add(url)
            else:
                fresh = [one for one in dict.fromkeys(web.web.leads_to(url, port)) if one not in known]
                known |= {*fresh}
                waiting += [one for one in fresh if host_of(one) != "127.16.0.2" and "/archive/" not in one]
        asked = {f"http://{one.host}:{port}{one.target}" for one in web.exchanges() if not one.is_robots}
        expected = {url for url in known if host_of(url) != "127.16.0.2" and "/archive/" not in url}
        assert {url for url in asked if "/archive/" not in url} == expected
        assert eliminated
        assert unseen
        assert not eliminated & {*kept}
        assert expected - eliminated <= {*kept}


class Site(BaseHTTPRequestHandler):
    """A page with a reserved text, packed or not, and the same page at another host."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers['Host'].partition(':')[0]}{self.path}")
        body = b"<html><body>" + b"A page. " * 200 + b"RESERVED <a href=/behind>.</a></body></html>"
        packed = gzip.compress(body) if self.path == "/packed" else body
        self.send_response(404 if self.path in ("/robots.txt", "/behind") else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if packed is not body:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_eliminated_page_leaves_no_trace(tmp_path: Path) -> None:
    """It is not stored, not followed, and another host's page with its content is no copy of it."""
    Site.asked.clear()
    (tmp_path / "rules.txt").write_text("127.0.0.1 eliminate=reserved\n")
    with at_work(ThreadingHTTPServer(("127.0.0.1", 0), Site)) as server:
        port = server.server_address[1]
        with at_work(ThreadingHTTPServer(("127.0.0.2", port), Site)):
            seeds = [f"http://127.0.0.1:{port}/plain", f"http://127.0.0.1:{port}/packed", f"http://127.0.0.2:{port}/"]
            settings = {**SETTINGS, "BIGCRAWL_RULES": tmp_path / "rules.txt"}
            with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
                assert crawl.run(300) == 0
                assert "'bigcrawl/filtered/string': 2" in crawl.log.read_text()
                copies = crawl.asked("copies", str(tmp_path / "copies.jsonl"))
                kept = stored(crawl.directory / "warc")
    assert "127.0.0.1/behind" not in Site.asked
    assert "127.0.0.2/behind" in Site.asked
    assert [url for url in kept if "robots" not in url and "127.0.0.1" in url] == []
    assert seeds[2] in kept
    assert (tmp_path / "copies.jsonl").read_text() == "", copies


class Charsets(BaseHTTPRequestHandler):
    """Pages in several charsets, declared by a header, by an element, or not at all; each links to one behind it."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        text = "<p>\u65e5\u672c\u8a9e \u306e \u30da\u30fc\u30b8" if "ascii" not in self.path else "<p>plain"
        charset = "utf-8" if "utf" in self.path or "ascii" in self.path else "euc-jp"
        element = f"<meta charset={charset}>" if "element" in self.path else ""
        link = "" if "behind" in self.path else f"<a href='{self.path}/behind'>.</a>"
        body = f"<html>{element}{text * 50}{link}</html>".encode(charset)
        self.send_response(404 if self.path == "/robots.txt" or "behind" in self.path else 200)
        self.send_header("Content-Type", f"text/html; charset={charset}" if "header" in self.path else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_pages_of_other_charsets_are_not_seen(tmp_path: Path) -> None:
    """Whether a header or an element declares them. What is all ASCII has no charset."""
    Charsets.asked.clear()
    (tmp_path / "rules.txt").write_text("127.0.0.1 charsets=utf-8\n")
    paths = ["/utf-header", "/utf-element", "/euc-header", "/euc-element", "/ascii"]
    with at_work(ThreadingHTTPServer(("127.0.0.1", 0), Charsets)) as server:
        seeds = [f"http://127.0.0.1:{server.server_address[1]}{path}" for path in paths]
        with Crawl(tmp_path / "crawl", seeds, {**SETTINGS, "BIGCRAWL_RULES": tmp_path / "rules.txt"}) as crawl:
            assert crawl.run(300) == 0
            assert "'bigcrawl/filtered/charset': 2" in crawl.log.read_text()
    behind = {path.removesuffix("/behind") for path in Charsets.asked if path.endswith("/behind")}
    assert behind == {"/utf-header", "/utf-element", "/ascii"}


def test_waits_between_visits_are_of_each_site(tmp_path: Path) -> None:
    """One is visited again each second, the other never; by the setting both would wait for a week."""
    Site.asked.clear()
    (tmp_path / "rules.txt").write_text("127.0.0.1 revisit=1\n127.0.0.2 revisit=0\n")
    with at_work(ThreadingHTTPServer(("127.0.0.1", 0), Site)) as server:
        port = server.server_address[1]
        with at_work(ThreadingHTTPServer(("127.0.0.2", port), Site)):
            seeds = [f"http://127.0.0.{number}:{port}/seed" for number in (1, 2)]
            settings = {
                **SETTINGS,
                "BIGCRAWL_RULES": tmp_path / "rules.txt",
                "BIGCRAWL_REVISIT": "periodic",
                "BIGCRAWL_REVISIT_VISITS_MAX": 3,
            }
            with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
                assert crawl.run(300) == 0
    assert [Site.asked.count(f"127.0.0.{number}/seed") for number in (1, 2)] == [3, 1]
