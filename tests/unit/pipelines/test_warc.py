"""The WARC pipeline in real crawls: Scrapy's own scheduler, a real server, one process a crawl."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import ConfigError
from bigcrawl.page_index.index_files import index_path
from bigcrawl.pipelines.warc import WarcPipeline
from bigcrawl.scheduler.adapter.registry import storage_of
from bigcrawl.warc.segments import WarcWriter
from tests.support.running import warm
from tests.support.servers.serving import at_work
from tests.unit.warc.reading import Record, exchange, read_checked

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[3]
PAGE = b"<html>" + b"<p>One of many words.</p>" * 200
GZIPPED = gzip.compress(PAGE, mtime=0)
BYTES = bytes(range(256)) * 3
CONTACT = "https://crawler.mysite.org/about"


class Site(BaseHTTPRequestHandler):
    """Plain, gzip-encoded, chunked, redirected, missing, truncated, binary and empty answers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path.rsplit("/", 1)[1]:
            case "gzip":
                self.answer(200, GZIPPED, ("Content-Encoding", "gzip"), ("Content-Type", "text/html"))
            case "chunked":
                self.answer(200, None, ("Transfer-Encoding", "chunked"), ("Content-Type", "text/html"))
                for start in range(0, len(PAGE), 1000):
                    piece = PAGE[start : start + 1000]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            case "redirect":
                self.answer(302, b"moved", ("Location", "/plain"))
            case "missing":
                self.answer(404, b"not here")
            case "lost":
                self.answer(404, PAGE, ("Content-Type", "text/html"))
            case "torn":
                self.answer(200, None, ("Content-Length", str(len(PAGE) + 50)))
                self.wfile.write(PAGE)
                self.close_connection = True
            case "until-close":
                self.answer(200, None)
                self.wfile.write(PAGE)
                self.close_connection = True
            case "bytes":
                self.answer(200, BYTES, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))
            case "empty":
                self.answer(204, None)
            case _:
                self.answer(200, PAGE, ("Content-Type", "text/html"))

    def do_HEAD(self) -> None:
        self.answer(200, None, ("Content-Length", "12345"))

    def do_POST(self) -> None:
        self.answer(200, b"got " + self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status: int, body: bytes | None, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:  # the base class names it so  # noqa: A002
        pass


@contextmanager
def served() -> Iterator[str]:
    with at_work(ThreadingHTTPServer(("127.0.0.1", 0), Site)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served() as url:
        yield url


def crawl(
    directory: Path,
    urls: list[list[str]],
    *,
    room: int | None = None,
    when_stuck: str | None = None,
    **settings: object,
) -> tuple[dict[str, Any], str]:
    """Run a crawl in a process of its own; returns its report and its log."""
    settings = {
        "BIGCRAWL_WARC_DIR": str(directory),
        "BIGCRAWL_CRAWL": "tiny",
        "ITEM_PIPELINES": {"tests.unit.pipelines.tiny_crawl.QuickPipeline": 900},
        "DOWNLOAD_FAIL_ON_DATALOSS": False,
        # Its first use would look for the public suffix list on the network.
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "LOG_LEVEL": "INFO",
        **settings,
    }
    order = {"urls": urls, "settings": settings, "room": room, "when_stuck": when_stuck}
    done = warm.run(["tests.unit.pipelines.tiny_crawl", json.dumps(order)], cwd=PROJECT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def exchanges(records: list[Record]) -> dict[str, tuple[Record, Record]]:
    """Response and request by method and path; asserts that they name each other and are there once."""
    found = {}
    responses = {record.headers["WARC-Record-ID"]: record for record in records if record.type == "response"}
    for request in records:
        if request.type == "request":
            response = responses.pop(request.headers["WARC-Concurrent-To"])
            method = request.http_head[0].split()[0].decode()
            key = f"{method} {urlsplit(request.headers['WARC-Target-URI']).path}"
            assert key not in found
            found[key] = response, request
    assert not responses
    return found


def test_copies_are_stored_by_reference_where_a_project_asks_for_it(tmp_path: Path, site: str) -> None:
    """The first page with a body has it, the others refer to it and are counted; short bodies are stored again."""
    urls = [["GET", f"{site}/{path}", ""] for path in ("one", "two", "gzip", "three", "missing", "x/missing")]
    report, _ = crawl(tmp_path, urls, BIGCRAWL_WARC_COPIES="by-reference", CONCURRENT_REQUESTS=1)
    (path,) = tmp_path.glob("*.warc.gz")
    records = read_checked(path)
    kinds = {urlsplit(r.headers["WARC-Target-URI"]).path: r for r in records if r.type in ("response", "revisit")}
    copies = {name for name, record in kinds.items() if record.type == "revisit"}
    whole = {"/one", "/two", "/three"} - copies
    assert len(copies) == 2
    assert len(whole) == 1
    (original,) = (kinds[name] for name in whole)
    for name in copies:
        assert kinds[name].headers["WARC-Refers-To"] == original.headers["WARC-Record-ID"]
        assert kinds[name].http_head == original.http_head or kinds[name].http_head[0] == b"HTTP/1.1 200 OK"
    assert report["stats"]["bigcrawl/warc/copies"] == 2
    assert set(report["copies"]) == {f"{site}{name}" for name in copies}
    assert set(report["copies"].values()) == {f"{site}{whole.pop()}"}


def test_a_body_that_came_with_an_error_has_no_links_yet(tmp_path: Path, site: str) -> None:
    """A page with the body of an error page refers to it, and is no copy to a spider, which has not seen the first."""
    urls = [["GET", f"{site}/{path}", ""] for path in ("lost", "one")]
    report, _ = crawl(tmp_path, urls, BIGCRAWL_WARC_COPIES="by-reference", CONCURRENT_REQUESTS=1)
    assert report["stats"]["bigcrawl/warc/copies"] == 1
    assert report["copies"] == {}


HANDLERS = {
    "http11": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler",
    "aiohttp": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler",
}


@pytest.mark.parametrize("handler", HANDLERS)
def test_everything_the_crawl_fetched_is_in_the_warc_as_it_was_sent(tmp_path: Path, site: str, handler: str) -> None:
    """Pages, redirects, errors, robots.txt and torn bodies are stored with their bytes on the wire."""
    paths = ["gzip", "chunked", "redirect", "missing", "torn", "until-close", "bytes", "empty"]
    urls = [["GET", f"{site}/{path}", ""] for path in paths]
    urls += [["HEAD", f"{site}/head", ""], ["POST", f"{site}/form", "a=1&b=2"]]
    handlers = {"http": HANDLERS[handler]}
    report, log = crawl(tmp_path, urls, DOWNLOAD_HANDLERS=handlers, ROBOTSTXT_OBEY=True, BIGCRAWL_CONTACT=CONTACT)
    (path,) = tmp_path.glob("*.warc.gz*")
    assert path.name.startswith("tiny-")
    records = read_checked(path)
    found = exchanges(records)
    assert found.keys() == {
        *(f"GET /{path}" for path in paths), "GET /plain", "GET /robots.txt", "HEAD /head", "POST /form",
    }  # fmt: skip

    bodies = {key.rpartition("/")[2]: response.body for key, (response, _) in found.items()}
    assert bodies["gzip"] == GZIPPED
    assert bodies["chunked"] == bodies["plain"] == bodies["torn"] == bodies["until-close"] == PAGE
    assert (bodies["redirect"], bodies["missing"], bodies["bytes"]) == (b"moved", b"not here", BYTES)
    assert (bodies["form"], bodies["empty"], bodies["head"]) == (b"got a=1&b=2", b"", b"")
    lines = {key.rpartition("/")[2]: response.http_head for key, (response, _) in found.items()}
    assert lines["redirect"][0] == b"HTTP/1.1 302 Found"
    assert b"Location: /plain" in lines["redirect"]
    assert lines["missing"][0] == b"HTTP/1.1 404 Not Found"
    assert b"Content-Encoding: gzip" in lines["gzip"]
    assert not any(line.startswith(b"Transfer-Encoding") for line in lines["chunked"])
    assert (b"X-Crawler-Transfer-Encoding: chunked" in lines["chunked"]) is (handler == "aiohttp")
    assert {b"Set-Cookie: a=1", b"Set-Cookie: b=2"} <= set(lines["bytes"])
    assert b"Content-Length: 12345" in lines["head"]
    assert b"X-Crawler-Content-Length: %d" % (len(PAGE) + 50) in lines["torn"]
    assert b"Content-Length: %d" % len(PAGE) in lines["torn"]

    form = found["POST /form"][1]
    assert form.http_head[0] == b"POST /form HTTP/1.1"
    assert {b"Host: " + site.removeprefix("http://").encode(), b"Content-Length: 7"} <= set(form.http_head)
    assert any(line.startswith(b"User-Agent: Scrapy") for line in form.http_head)
    assert form.body == b"a=1&b=2"
    for response, request in found.values():
        assert response.headers["WARC-IP-Address"] == request.headers["WARC-IP-Address"] == "127.0.0.1"
    truncated = {key for key, (response, _) in found.items() if "WARC-Truncated" in response.headers}
    assert truncated == {"GET /torn"}
    assert found["GET /torn"][0].headers["WARC-Truncated"] == "disconnect"

    info = dict(line.split(": ", 1) for line in records[0].block.decode().splitlines())
    assert info["isPartOf"] == "tiny"
    assert info["robots"] == "obeyed (RFC 9309)"
    assert info["operator"] == CONTACT
    notes = {record.headers["WARC-Refers-To"]: record.block.decode() for record in records if record.type == "metadata"}
    noted = notes[found["GET /plain"][0].headers["WARC-Record-ID"]]
    assert re.fullmatch(rf"fetchTimeMs: \d+\r\ndepth: 0\r\npriority: 2\r\nvia: {site}/redirect\r\n", noted)
    stats = report["stats"]
    assert stats["bigcrawl/warc/records"] == len(records) == 1 + 3 * len(found)
    assert stats["bigcrawl/warc/indexed_files"] == 1
    captures = [key for key in found if not key.startswith("HEAD ")]
    assert len(index_path(path).read_bytes().splitlines()) == len(captures)
    assert stats["bigcrawl/warc/bytes"] == path.stat().st_size
    assert "bigcrawl/warc/write_errors" not in stats
    assert {urlsplit(url).path for url in report["items"]} == {
        key.split()[1] for key in found if key not in {"GET /redirect", "GET /missing", "GET /robots.txt"}
    }
    assert "Traceback" not in log


def test_crawl_pauses_while_the_disk_is_full_and_then_stores_everything(tmp_path: Path, site: str) -> None:
    """A refused write pauses the engine, is said once, and costs no page once there is room."""
    urls = [["GET", f"{site}/page-{number}", ""] for number in range(40)]
    report, log = crawl(tmp_path, urls, room=6000, when_stuck="give room", CONCURRENT_REQUESTS=4)
    (path,) = tmp_path.glob("*.warc.gz*")
    assert exchanges(read_checked(path)).keys() == {f"GET /page-{number}" for number in range(40)}
    assert report["pauses"] == [True]
    assert report["stats"]["bigcrawl/warc/write_errors"] > 1
    assert report["is_flushed"]
    assert log.count("cannot be written: File too large;") == log.count("bytes are free there") == 1
    assert log.count("has room again") == 1
    assert "Traceback" not in log


def test_crawl_that_ends_on_a_full_disk_says_what_is_not_stored(tmp_path: Path, site: str) -> None:
    """What found no room stays unflushed, so that nobody acknowledges it, and is counted in the log."""
    urls = [["GET", f"{site}/page-{number}", ""] for number in range(30)]
    report, log = crawl(tmp_path, urls, room=4000, when_stuck="close", CONCURRENT_REQUESTS=2)
    (path,) = tmp_path.glob("*.warc.gz*")
    stored = exchanges(read_checked(path))
    assert not report["is_flushed"]
    assert report["stats"]["finish_reason"] == "stuck"
    assert 0 < report["unwritten"] <= 2
    assert report["stats"]["response_received_count"] == len(stored) + report["unwritten"]
    assert f"{report['unwritten']} exchanges are not stored: there is no room in" in log
    assert "Traceback" not in log


def test_files_of_a_killed_run_are_closed_by_the_next(tmp_path: Path, site: str) -> None:
    """A torn file of a dead writer is cut, closed and counted; a file in use is left alone."""
    dead = WarcWriter(tmp_path, "dead", "n")
    dead.write(exchange(0))
    assert dead.open_path
    torn = dead.open_path.read_bytes() + b"\x1f\x8b\x08"
    dead.close()
    (tmp_path / "dead.warc.gz.open").write_bytes(torn)
    live = WarcWriter(tmp_path, "live", "n")
    live.write(exchange(0))
    report, log = crawl(tmp_path, [["GET", f"{site}/plain", ""]])
    assert len(read_checked(tmp_path / "dead.warc.gz")) == 3
    assert report["stats"]["bigcrawl/warc/recovered_files"] == 1
    assert report["stats"]["bigcrawl/warc/cut_bytes"] == 3
    assert report["stats"]["bigcrawl/warc/indexed_files"] == 3
    assert {index_path(path) for path in tmp_path.glob("*.warc.gz")} == set(tmp_path.glob("*.cdxj"))
    assert [path.name for path in tmp_path.glob("*.open")] == [live.open_path.name]  # type: ignore[union-attr]
    live.close()
    assert "Traceback" not in log


def test_stored_pages_are_not_stored_again(tmp_path: Path) -> None:
    """A project may name the pipeline itself; over stored pages it is off."""
    settings = {"BIGCRAWL_WARC_DIR": str(tmp_path / "new"), "BIGCRAWL_SOURCE": str(tmp_path)}
    with pytest.raises(NotConfigured, match="stored already"):
        WarcPipeline.from_crawler(get_crawler(Spider, settings))
    assert not (tmp_path / "new").exists()


def test_pipeline_without_a_directory_is_off() -> None:
    """An unset or empty BIGCRAWL_WARC_DIR stores nothing, and there is no storage to ask."""
    crawler = get_crawler(Spider, {"BIGCRAWL_WARC_DIR": ""})
    with pytest.raises(NotConfigured):
        WarcPipeline.from_crawler(crawler)
    assert storage_of(crawler) is None


def test_directory_that_cannot_be_is_a_config_error(tmp_path: Path) -> None:
    """A path below a file is refused with the setting's name."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="BIGCRAWL_WARC_DIR"):
        WarcPipeline.from_crawler(get_crawler(Spider, {"BIGCRAWL_WARC_DIR": str(tmp_path / "file" / "warc")}))


def test_storage_is_found_by_its_crawler(tmp_path: Path) -> None:
    """Each crawler has its own storage, made with the directory if need be; a fresh one is flushed."""
    crawler = get_crawler(Spider, {"BIGCRAWL_WARC_DIR": str(tmp_path / "new" / "warc")})
    pipeline = WarcPipeline.from_crawler(crawler)
    assert storage_of(crawler) is pipeline.writes
    assert pipeline.writes.is_flushed()
    assert (tmp_path / "new" / "warc").is_dir()
    assert storage_of(get_crawler(Spider)) is None
