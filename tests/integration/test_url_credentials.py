"""A password in a URL, and Scrapy's own way to give one: who is sent it, and where it can be read afterwards."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from fastwarc.warc import ArchiveIterator

from tests.support.crawling.crawls import Crawl
from tests.support.crawling.verdicts import indexes
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IN_SEED, OF_SPIDER = "seed-s3cret", "own-s3cret"
IN_PAGE, IN_REDIRECT, IN_MAP = "page-s3cret", "moved-s3cret", "map-s3cret"
SECRETS = (IN_SEED, OF_SPIDER)
SPIDER = f"""
from bigcrawl.spiders.broad import BroadSpider

class Member(BroadSpider):
    name = "member"
    http_user, http_pass = "ann", "{OF_SPIDER}"
"""
BASIC = "Basic " + base64.b64encode(f"ann:{OF_SPIDER}".encode()).decode()


class Site(BaseHTTPRequestHandler):
    """Pages for members only on 127.0.0.1, and any page on 127.0.0.2; notes who asks with which headers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = self.connection.getsockname()[0]
        self.server.asked.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        if self.path == "/robots.txt":
            return self.answer(200, f"User-agent: *\nDisallow: /closed\nSitemap: {self.named(IN_MAP)}/map.xml\n")
        if host == "127.0.0.1" and "Authorization" not in self.headers:
            return self.answer(401, "", **{"WWW-Authenticate": 'Basic realm="x"'})
        if self.path == "/map.xml":
            return self.answer(200, f"<urlset><url><loc>{self.named(IN_MAP)}/mapped</loc></url></urlset>")
        if self.path == "/moved":
            return self.answer(302, "", Location=f"{self.named(IN_REDIRECT)}/target")
        if self.path == "/away":
            return self.answer(302, "", Location=f"{self.server.elsewhere}/from-redirect")  # type: ignore[attr-defined]
        if self.path != "/":
            return self.answer(200, "")
        named, away = self.named(IN_PAGE), self.server.elsewhere  # type: ignore[attr-defined]
        links = (f"{named}/linked", "/plain", "/linked", "/moved", "/away", f"{away}/by-link", f"{named}/closed")
        return self.answer(200, "".join(f'<a href="{link}">.</a>' for link in links))

    def named(self, password: str) -> str:
        host, port = self.connection.getsockname()
        return f"http://bob:{password}@{host}:{port}"

    def answer(self, status: int, text: str, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[tuple[ThreadingHTTPServer, ThreadingHTTPServer]]:
    with (
        at_work(ThreadingHTTPServer(("127.0.0.1", 0), Site)) as server,
        at_work(ThreadingHTTPServer(("127.0.0.2", 0), Site)) as other,
    ):
        for each, elsewhere in ((server, other), (other, server)):
            each.asked, each.elsewhere = [], "http://{}:{}".format(*elsewhere.server_address)  # type: ignore[attr-defined]
        yield server, other


def test_password_goes_to_whom_it_is_given_for_and_is_shown_nowhere(tmp_path: Path) -> None:
    """A spider's goes to its domain alone, robots.txt included. One in a URL goes to nobody."""
    with serving() as (server, other):
        port = server.server_address[1]
        seeds = [f"http://ann:{IN_SEED}@127.0.0.1:{port}/seeded", f"http://127.0.0.1:{port}/"]
        settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2, "BIGCRAWL_WARC_INDEX": "cdxj"}
        settings |= {"LOG_LEVEL": "DEBUG", "SPIDER_MODULES": "member_spider"}
        (tmp_path / "member_spider.py").write_text(SPIDER)
        environment = {"PYTHONPATH": str(tmp_path)}
        arguments = {"sitemaps": "1", "http_auth_domain": f"127.0.0.1:{port}"}
        with Crawl(
            tmp_path / "crawl", seeds, settings, spider="member", arguments=arguments, environment=environment
        ) as crawl:
            assert crawl.run(300) == 0
            log = crawl.log.read_text()
            assert "Traceback" not in log
            assert "seed 1 is skipped: 'http://***@127.0.0.1" in log
            asked, headers = zip(*server.asked, strict=True)  # type: ignore[attr-defined]
            wanted = ["/", "/away", "/linked", "/map.xml", "/mapped", "/moved", "/plain", "/robots.txt", "/target"]
            assert sorted(asked) == wanted
            assert {each.get("Authorization") for each in headers} == {BASIC}
            others = other.asked  # type: ignore[attr-defined]
            assert {path for path, _ in others} >= {"/robots.txt", "/by-link", "/from-redirect"}
            assert not any("Authorization" in each for _, each in others)
            assert not any("@" in each.get("Referer", "") for each in (*headers, *(each for _, each in others)))
            for words in (("status",), ("hosts",), ("errors",), ("explain", f"http://127.0.0.1:{port}/linked")):
                _has_no_secret(crawl.frontier(*words).stdout)
            told = crawl.frontier("explain", f"http://ann:{IN_SEED}@127.0.0.1:{port}/x", check=False)
            assert told.returncode
            assert "HttpAuthMiddleware" in told.stdout + told.stderr
            _has_no_secret(told.stdout + told.stderr)
            added = crawl.frontier("add", f"http://ann:{IN_SEED}@127.0.0.1:{port}/x", check=False)
            assert "not added" in added.stdout + added.stderr
            _has_no_secret(added.stdout + added.stderr)
            _has_no_secret(log)
        indexes(tmp_path / "crawl" / "warc", ".cdxj")
        files = [path for path in (tmp_path / "crawl").rglob("*") if path.is_file()]
        records = [path for path in files if path.name.endswith(".warc.gz")]
        assert records
        for path in records:
            with path.open("rb") as file:
                for record in ArchiveIterator(file, parse_http=False):
                    held = f"{record.headers} {record.reader.read()!r}"
                    _has_no_secret(held)
                    assert BASIC not in held
                    # A page is stored as its server sent it, with what the server itself wrote into it.
                    assert record.headers["WARC-Type"] == "response" or IN_PAGE not in held
        for path in files:
            if path.name != "seeds.txt" and path not in records:
                _has_no_secret(path.read_bytes().decode("latin-1"))


def _has_no_secret(text: str) -> None:
    for secret in SECRETS:
        at = text.find(secret)
        assert at < 0, text[max(0, at - 100) : at + 100]
