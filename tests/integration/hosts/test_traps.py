"""A crawl that meets a calendar without an end: it says so, goes on, and can be asked."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.named_web import NamedWeb
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINKS = 60


class Calendar(BaseHTTPRequestHandler):
    """Every month links to sixty others, farther ahead; below /same/ there is one page."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/same/"):
            links = [f"/same/{number}" for number in range(200)]
        else:
            month = int(self.path.rpartition("/")[2] or 0) if self.path.startswith("/calendar/") else 0
            links = [f"/calendar/2031/{LINKS * month + number}" for number in range(1, LINKS + 1)]
        body = "".join(f'<a href="{link}">.</a>' for link in links).encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    with at_work(ThreadingHTTPServer(("127.0.0.1", 0), Calendar)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.long("a page under many URLs, which is told and explained in the same way")
def test_endless_calendar_is_told_counted_and_explained(tmp_path: Path) -> None:
    """By the log once, in the stats, by `explain` and `budget`; and the crawl goes on in it, more slowly."""
    settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2, "BIGCRAWL_MAX_PAGES": 40}
    with no_strays_below(tmp_path), serving() as url, Crawl(tmp_path / "crawl", [f"{url}/"], settings) as crawl:
        assert crawl.run(300) == 0
        log = crawl.log.read_text()
        assert "Traceback" not in log
        assert log.count("127.0.0.1 is taken for a trap and its budget divided by 5: ") == 1
        assert "'bigcrawl/traps/calendar': " in log
        found = crawl.asked("explain", f"{url}/calendar/2031/5")
        assert found["shape"] == ["calendar"]
        assert found["trap"]["is_caught"]
        assert found["trap"]["budget_divided_by"] == 5
        assert found["trap"]["kinds"]["calendar"] >= 250
        budget = crawl.asked("budget", "127.0.0.1")
        assert budget["trap"].startswith("divided by 5, unless it is set by hand: ")


@pytest.mark.long("a crawl in a trap; a domain that answers for every name is found out here, too")
def test_same_page_under_many_urls_is_told_and_explained(tmp_path: Path) -> None:
    """After 64 pages of 200; all of them are fetched in the end, because nothing is dropped."""
    settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2}
    with no_strays_below(tmp_path), serving() as url, Crawl(tmp_path / "crawl", [f"{url}/same/0"], settings) as crawl:
        assert crawl.run(300) == 0
        log = crawl.log.read_text()
        assert log.count("127.0.0.1 is considered a trap: about 63 of its last 64 pages had the same content as") == 1
        assert "\npages (any status)                   200" in log
        found = crawl.asked("explain", f"{url}/same/5")
        assert (found["outcome"]["name"], found["shape"]) == ("status:200", [])
        assert (found["trap"]["same"], found["trap"]["budget_divided_by"]) == (63, 5)


def test_domain_that_answers_for_every_name_is_found_out(tmp_path: Path) -> None:
    """By one look-up of a name that no page has; a domain with as many hosts, all of them real, is not."""
    hosts = [f"h{number}.{domain}.example" for domain in ("farm", "honest") for number in range(6)]
    names = {host: "127.0.0.1" for host in hosts if "honest" in host} | {"*.farm.example": "127.0.0.1"}
    pages = {f"{host}{path}": f'<a href="/more">{host}{path}</a>' for host in hosts for path in ("/", "/more")}
    with no_strays_below(tmp_path), NamedWeb(["127.0.0.1"], names, pages) as web:
        settings = {
            "BIGCRAWL_DNS_SERVERS": web.name_server,
            "BIGCRAWL_HOST_DELAY": 0.1,
            "BIGCRAWL_PARTITIONS": 2,
            "BIGCRAWL_TRAP_WILDCARD_HOSTS": 4,
        }
        with Crawl(tmp_path / "crawl", [web.url(host) for host in hosts], settings) as crawl:
            assert crawl.run(300) == 0
            log = crawl.log.read_text()
            assert "Traceback" not in log
            assert log.count("farm.example is taken for a trap: DNS has an address for any name of it") == 1
            assert "honest.example is taken" not in log
            asked = {name for name in web.zone.asked if name not in hosts}
            assert sorted(name.partition(".")[2] for name in asked) == ["farm.example", "honest.example"]
            trap = crawl.asked("explain", web.url(hosts[0]))["trap"]
            assert (trap["is_caught"], trap["is_wildcard"], trap["budget_divided_by"]) == (True, True, 5)
            assert crawl.asked("explain", web.url(hosts[-1]))["trap"] is None
            assert "any name of it" in crawl.asked("budget", "farm.example")["trap"]
