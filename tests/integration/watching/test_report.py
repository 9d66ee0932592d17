"""`scrapy frontier report` of real crawls: while one runs, when it has ended, and by itself at the end."""

from __future__ import annotations

import gzip
import json
import socketserver
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.utils.test import get_crawler

from bigcrawl.extensions.end_report import EndReport
from bigcrawl.redisdb.keys import CrawlKeys
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "text/<script>alert(1)</script>"
PACKED = gzip.compress(b"<html><body>" + b"packed " * 2_000 + b"</body></html>")


def tables_of(report: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Rows by the first cell, by table."""
    return {name: {row[0]: row[1:] for row in table["rows"]} for name, table in report["tables"].items()}


FEW = {"BIGCRAWL_PARTITIONS": 8}


class Odd(BaseHTTPRequestHandler):
    """A site whose pages claim to be odd things."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        links = "".join(f'<a href="{path}">x</a>' for path in ("/packed", "/hostile", "/none", "/gone<b>"))
        pages: dict[str, tuple[int, dict[str, str], bytes]] = {
            "/robots.txt": (404, {}, b"no rules"),
            "/": (200, {"Content-Type": "text/html; charset=utf-8"}, links.encode()),
            "/packed": (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, PACKED),
            "/hostile": (200, {"Content-Type": HOSTILE}, b"x"),
            "/none": (200, {}, b"nothing is said"),
        }
        status, headers, body = pages.get(self.path, (404, {"Content-Type": "text/html"}, b"gone"))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        """Say nothing."""


@contextmanager
def odd_site() -> Iterator[str]:
    """Serve it."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Odd) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path / "web", hosts=6, pages=12) as served:
        yield served


@pytest.mark.long("a crawl of its own; odd answers are counted in another one here")
def test_report_agrees_with_the_origins_log(tmp_path: Path, web: SimulatedWeb) -> None:
    """Written by the node at its end, and by the command: requests, statuses, robots.txt, hosts and bytes."""
    written = tmp_path / "written"
    crawl = Crawl(
        tmp_path / "crawl",
        web.seeds,
        {**FEW, "BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_REPORT_DIR": written, "BIGCRAWL_SERVER_DELAY": 0.01},
    )
    assert crawl.run() == 0
    by_node = json.loads((written / "report.json").read_text())
    by_command = crawl.asked("report", str(tmp_path / "asked"))
    assert by_command["files"] == [str(tmp_path / "asked" / name) for name in ("report.html", "report.json")]
    assert by_command["tables"] == by_node["tables"]
    assert by_node["finished"]
    exchanges = web.exchanges()
    pages = [each for each in exchanges if not each.is_robots]
    tables = tables_of(by_node)
    assert tables["requests"]["HTTP requests"][0] == len(exchanges)
    assert tables["requests"]["requests for robots.txt"][0] == len(exchanges) - len(pages) == 6
    assert sum(row[1] for row in tables["robots"].values()) == 6
    retried = tables["requests"]["tries that were repeated"][0]
    assert sum(row[1] for row in tables["statuses"].values()) == len(pages) - retried
    assert sum(row[0] for row in tables["sizes"].values()) == Counter(each.status for each in pages)[200]
    assert tables["figures"]["hosts that answered"] == ["6"]
    assert tables["figures"]["servers (addresses) that answered"] == ["6"]
    measured = tables["due"]["hosts: gaps that were too short"][0]
    assert measured == f"0 of {len(exchanges) - 6}", "every gap but each host's first was measured, and none was short"
    assert tables["due"]["servers: gaps that were too short"][0] == f"0 of {len(exchanges) - 6}"
    assert tables["measures"]["coverage: URLs that ended, of those that were to be fetched"] == ["100.00%"]
    assert len(tables["plds"]) == 6
    assert all(row[3] is not None for row in tables["plds"].values()), "in-degrees are read from the partitions' files"
    assert f"report: {written / 'report.html'}" in crawl.log.read_text()


def test_odd_answers_are_counted_as_what_they_are(tmp_path: Path) -> None:
    """Packed pages by their encoding and unpacked size, types that are none by what is wrong; nothing of it is HTML."""
    with odd_site() as site:
        crawl = Crawl(tmp_path / "crawl", [site], {**FEW, "BIGCRAWL_HOST_DELAY": 0.01})
        assert crawl.run() == 0
    report = crawl.asked("report", str(tmp_path / "report"))
    tables = tables_of(report)
    assert {name: row[0] for name, row in tables["types"].items()} == {"text/html": 2, "(malformed)": 1, "(none)": 1}
    assert tables["encodings"] == {"gzip": [1, 0.25, len(PACKED), len(PACKED)]}
    ratio = len(gzip.decompress(PACKED)) / len(PACKED)
    assert tables["figures"]["compression ratio of those that were unpacked"] == [f"1:{ratio:,.2f}"]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "/gone%3Cb%3E" in page


def test_a_node_that_found_no_time_to_leave_is_not_waited_for(tmp_path: Path) -> None:
    """It is listed as alive when it writes the report, and so may be others, which write it then."""
    with PrivateRedis() as server, odd_site() as site:
        crawl = Crawl(tmp_path / "crawl", [site], {**FEW, "BIGCRAWL_REDIS_URL": server.url})
        assert crawl.run() == 0
        config = crawl.config()
        report = EndReport(get_crawler(), config, tmp_path / "report")
        now_s, _ = server.client.time()
        server.client.zadd(CrawlKeys(config.crawl.name).beats, {"this-node": now_s * 1000})
        assert not report._write_report("another-node")
        assert not (tmp_path / "report").exists()
        assert report._write_report("this-node")
        assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.long("the report of a crawl that ends: it agrees with the origin's log")
def test_a_crawl_that_is_stopped_writes_none(tmp_path: Path, web: SimulatedWeb) -> None:
    """Whoever stops it may not wait; and a directory that cannot be written is told in one line."""
    (tmp_path / "file").write_text("")
    crawl = Crawl(
        tmp_path / "crawl", web.seeds, {**FEW, "BIGCRAWL_REPORT_DIR": tmp_path / "file", "BIGCRAWL_HOST_DELAY": 0.02}
    )
    crawl.start(BIGCRAWL_HOST_DELAY=3)  # it is not over when it is stopped
    wait_until(lambda: len(web.exchanges()) > 10, "pages are fetched")
    crawl.terminate()
    crawl.wait(300)
    assert "report was written" not in crawl.log.read_text()
    assert crawl.run() == 0
    assert "no report was written: the report cannot be written to" in crawl.log.read_text()
    assert "Traceback" not in crawl.log.read_text()
    failed = crawl.frontier("report", str(tmp_path / "file"), check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("bigcrawl: the report cannot be written to")
