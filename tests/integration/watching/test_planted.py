"""What servers, files and users plant acts nowhere: not in the log, not in what commands print, not in the report."""

from __future__ import annotations

import socketserver
from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.keys import CrawlKeys
from tests.support.crawling.crawls import Crawl
from tests.support.planted import ESCAPES, PLANTED, TURN, assert_is_plain
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

IN_LINE = ESCAPES.replace("\r", "") + TURN  # what fits into a header
HEADERS = {
    "encoding": f"Content-Encoding: gzip, {IN_LINE}",
    "packed": "Content-Encoding: gzip",
    "cookie": f"Set-Cookie: a{IN_LINE}=b{IN_LINE}; Domain={IN_LINE}; Expires={IN_LINE}; Path=/{IN_LINE}",
    "type": f"Content-Type: text/{IN_LINE}; charset={IN_LINE}",
    "name": f"X-{IN_LINE}: a",
    "etag": f"ETag: {IN_LINE}\r\nLast-Modified: {IN_LINE}\r\nRetry-After: {IN_LINE}\r\nX-Robots-Tag: {IN_LINE}",
    "length": f"Content-Length: {IN_LINE}",
    "chunks": f"Transfer-Encoding: {IN_LINE}",
}
TO = {"host": f"http://{IN_LINE}.example/", "port": f"http://a.example:{IN_LINE}/", "path": f"/to{IN_LINE}"}
PAGE = (
    f'<meta name=robots content="{PLANTED}"><base href="{PLANTED}"><meta charset="{PLANTED}"><title>{PLANTED}</title>'
    f'<a href="/{PLANTED}" rel="{PLANTED}">{PLANTED}</a><a href="http://{PLANTED}/">a</a>'
    f'<meta http-equiv=refresh content="0;{PLANTED}">'
)
ROBOTS = (
    f"User-agent: *\nDisallow: /no{IN_LINE}\nCrawl-delay: {IN_LINE}\n{IN_LINE}: a\nSitemap: /sitemap\n"
    f"Sitemap: {IN_LINE}\n"
)
SITEMAP = f"<urlset><url><loc>/{PLANTED}</loc><lastmod>{PLANTED}</lastmod><changefreq>{PLANTED}</changefreq></url>"


class Enemy(socketserver.StreamRequestHandler):
    """Answers by path, and plants."""

    def handle(self) -> None:
        path = self.rfile.readline().split(b" ")[1].decode("latin-1")
        while self.rfile.readline().strip():
            pass
        name = path.strip("/")
        status, head, body = f"200 {IN_LINE}", HEADERS.get(name, "Content-Type: text/html"), PAGE
        if name in TO:
            status, head = f"302 {IN_LINE}", f"Location: {TO[name]}"
        elif name == "status":
            status = f"599 {IN_LINE}"
        elif name == "line":
            status = IN_LINE
        elif name in ("robots.txt", "sitemap"):
            body = ROBOTS if name == "robots.txt" else SITEMAP
        self.wfile.write(f"HTTP/1.1 {status}\r\n{head}\r\nConnection: close\r\n\r\n{body}".encode())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


@pytest.mark.long("a crawl and twenty commands; tests/unit/logs asks the same of single lines")
def test_planted_text_acts_nowhere(tmp_path: Path) -> None:
    """From every field of an answer, seeds, arguments and an import, at LOG_LEVEL DEBUG."""
    with no_strays_below(tmp_path), PrivateRedis() as redis, at_work(Server(("127.0.62.40", 0), Enemy)) as server:
        base = f"http://127.0.62.40:{server.server_address[1]}/"
        names = ["", "status", "line", *HEADERS, *TO]
        seeds = [*(base + name for name in names), f"{base}{IN_LINE}", f"http://{IN_LINE}.example/", PLANTED]
        settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0, "LOG_LEVEL": "DEBUG", "RETRY_TIMES": 0}
        settings |= {"BIGCRAWL_WARC_INDEX": "cdxj", "BIGCRAWL_REDIS_URL": redis.url}
        crawl = Crawl(tmp_path / "crawl", seeds, settings, arguments={"note": PLANTED})
        with crawl:
            assert crawl.run() == 0
            log = crawl.log.read_text()
            assert_is_plain(log, ("/status> ", "unsupported encoding(s) 'gzip,", "\\x1b]0;owned"))
            lists = tmp_path / f"list{IN_LINE}.txt"
            lists.write_text(f"{PLANTED}\nhttp://a{IN_LINE}/\n")
            asked = [
                *(("status",), ("hosts",), ("errors",), ("nodes",), ("plds",), ("dead",), ("rejected",)),
                *(("explain", f"{base}{name}") for name in ("", "type", "host")),
                *(("explain", PLANTED), ("explain", f"{base}{PLANTED}"), ("host", PLANTED), ("pld", PLANTED)),
                *(
                    (PLANTED,),
                    ("status", PLANTED),
                    ("status", f"--{PLANTED}"),
                    ("status", "-s", f"BIGCRAWL_CRAWL={PLANTED}"),
                ),
                *(("budget", PLANTED, "--set", "1"), ("blacklist", "add", PLANTED), ("delay", PLANTED, "--set", "1")),
                *(("warc", "extract", f"{base}{name}") for name in ("", "cookie", "name", "status")),
                *(("import", str(lists)), ("import", "--from", "urls", str(lists)), ("warc", "verify", str(lists))),
                ("report", str(tmp_path / "report")),
            ]
            shown = ""
            for words in asked:
                done = crawl.frontier(*words, check=False)
                shown += done.stdout + done.stderr
                assert_is_plain(done.stdout)
                assert_is_plain(done.stderr)
            assert shown.count("\\x1b]0;owned") > len(asked) // 3, "most of them show it"
            with crawl.redis() as client:
                key = CrawlKeys(crawl.name).crawl
                client.hset(key, "spider", PLANTED)
                client.hdel(key, "finished")
            assert crawl.run() == 1
            assert_is_plain(crawl.log.read_text(), ("belongs to spider '\\x1b]0;owned",))
        for path in (tmp_path / "report").iterdir():
            assert_is_plain(path.read_text(), ("127.0.62.40",))
