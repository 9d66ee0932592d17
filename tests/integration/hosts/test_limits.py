"""A crawl of a host whose answers have no end: each is cut or refused, counted by reason, and stored as what it is."""

from __future__ import annotations

import gzip
import re
import socketserver
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastwarc.warc import ArchiveIterator

from tests.integration.watching.test_report import tables_of
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAXSIZE = 100_000
NOWHERE = {"to-mail": b"mailto:me@a.example", "to-no-ipv6": b"http://[::1/"}
LEADS = {**NOWHERE, **{f"hop{n}": b"/hop%d" % (n + 1) for n in range(5)}}
PACKED = {
    "bomb": (b"gzip", gzip.compress(b" " * 5_000_000)),
    "packed": (b"gzip, gzip, gzip", gzip.compress(gzip.compress(gzip.compress(b".")))),
    "unpacked": (b"gzip", b"\0 not packed at all"),
}
PATHS = ("endless", "stalled", *PACKED, "heads", "hop0", "fine", *NOWHERE, "refresh")
CLOSES = b"Connection: close\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + CLOSES


class Hostile(socketserver.StreamRequestHandler):
    """One answer a connection."""

    def handle(self) -> None:
        target = self.rfile.readline().split(b" ")[1].decode()
        while self.rfile.readline().strip():
            pass
        try:
            self.answer(target.strip("/"))
        except OSError:
            return  # the crawler has hung up

    def answer(self, name: str) -> None:
        send = self.wfile.write
        if name == "":
            self.page(b"".join(b'<a href="/%s">.</a>' % path.encode() for path in PATHS))
        elif name == "endless":
            # A link before the bound is found, and one behind it is not.
            send(HEAD + b'\r\n<a href="/found">.</a>')
            while True:
                send(b"x" * 10_000 + b'<a href="/late">.</a>' * (self.server.sent > MAXSIZE))
                self.server.sent += 10_000
        elif name == "stalled":
            send(HEAD + b"Content-Length: 1000\r\n\r\na part")
            self.rfile.read()
        elif name in PACKED:
            encoding, body = PACKED[name]
            self.page(body, b"Content-Encoding: %b\r\n" % encoding)
        elif name == "heads":
            send(b"HTTP/1.1 200 OK\r\n")
            while True:
                send(b"X-More: and more\r\n" * 100)
        elif name in LEADS:
            send(b"HTTP/1.1 302 Found\r\n" + CLOSES + b"Content-Length: 0\r\nLocation: %b\r\n\r\n" % LEADS[name])
        elif name == "refresh":
            self.page(b'<meta http-equiv=refresh content="0;url=mailto:me@a.example"><a href="/refreshed">.</a>')
        elif name == "robots.txt":
            send(b"HTTP/1.1 404 Not Found\r\n" + CLOSES + b"Content-Length: 0\r\n\r\n")
        else:
            self.page(b"fine")

    def page(self, body: bytes, more: bytes = b"") -> None:
        self.wfile.write(HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    server: Origin


class Origin(socketserver.ThreadingTCPServer):
    daemon_threads = True
    sent = 0


@contextmanager
def serving() -> Iterator[str]:
    with at_work(Origin(("127.0.0.1", 0), Hostile)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/"


def stored(directory: Path) -> dict[str, tuple[str | None, bytes]]:
    """By path: what the record says of its truncation, and its body."""
    found: dict[str, tuple[str | None, bytes]] = {}
    for path in directory.rglob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, parse_http=True):
                if record.headers["WARC-Type"] == "response":
                    name = record.headers["WARC-Target-URI"].rpartition("/")[2]
                    found[name] = (record.headers.get("WARC-Truncated"), record.reader.read())
    return found


def counted(log: str) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"'bigcrawl/limits/([\w-]+)': (\d+)", log)}


def test_crawl_of_endless_answers_ends_and_accounts_for_each(tmp_path: Path) -> None:
    """Every limit once; what could be kept is in the WARC, marked; and the pages beside them are fetched."""
    settings: dict[str, Any] = {
        "BIGCRAWL_DECOMPRESSION_RATIO_MAX": 50,
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_PARTITIONS": 2,
        "DOWNLOAD_MAXSIZE": MAXSIZE,
        "DOWNLOAD_TIMEOUT": 10,  # more than a page that has an end takes on a busy machine
        "METAREFRESH_ENABLED": True,
        "REDIRECT_MAX_TIMES": 3,
        "RETRY_ENABLED": False,
    }
    with no_strays_below(tmp_path), serving() as url, Crawl(tmp_path / "crawl", [url], settings) as crawl:
        assert crawl.run() == 0
        log = crawl.log.read_text()
        assert "Traceback" not in log
        limits = counted(log)
        # A MiB is free of the ratio, so that bound is the size's.
        met = ("size", "time", "decompressed-size", "encodings", "packing", "headers", "redirects")
        assert limits == dict.fromkeys(met, 1)
        assert "'bigcrawl/dropped/redirect': 3" in log
        assert "not read, or only in part, by limit: " in log
        assert f"{url}endless is not read, or only in part, by the limit size" in log
        for name, outcome, limit in (
            ("endless", "status:200", "size"),
            ("stalled", "status:200", "time"),
            ("bomb", "error:too-large", "decompressed-size"),
            ("packed", "error:too-large", "encodings"),
            ("heads", "error:too-large", "headers"),
            ("unpacked", "status:200", "packing"),
            ("fine", "status:200", None),
        ):
            ended = crawl.asked("explain", url + name)["outcome"]
            assert (ended["name"], ended["limit"]) == (outcome, limit)
        assert "size, larger than DOWNLOAD_MAXSIZE" in crawl.frontier("explain", url + "endless").stdout
        unread = tables_of(crawl.asked("report", str(tmp_path / "report")))["unread"]
        assert {reason: cells[0] for reason, cells in unread.items()} == dict.fromkeys(
            ("size", "time", "packing", "redirects"), 1
        )
        pages = stored(tmp_path / "crawl" / "warc")
        truncated = {name: (why, len(body)) for name, (why, body) in pages.items() if why}
        assert truncated == {"endless": ("length", MAXSIZE), "stalled": ("time", 6)}
        assert {"fine", "found", "bomb", "packed", "hop0", "hop3", "refresh", "refreshed", *NOWHERE} <= set(pages)
        assert not {"late", "heads", "hop4"} & set(pages)
        assert re.search(r"^  too-large +3$", log, re.MULTILINE)
        assert re.search(r"^  302 Found +6 ", log, re.MULTILINE)
