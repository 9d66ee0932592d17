"""A crawl that fetches several pages of a host over each kept connection before it pauses."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from tests.support.crawling.crawls import Crawl
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

PAGES, AT_ONCE, DELAY_S = 11, 4, 1.0
SHORTEST_S = DELAY_S - 0.02  # the server's clock and the crawl's are read at other moments


class Site(BaseHTTPRequestHandler):
    """Pages with links to all of them; notes when it is asked, and when it has answered."""

    asked: ClassVar[list[tuple[str, int, float, float]]] = []
    lock: ClassVar[threading.Lock] = threading.Lock()

    def do_GET(self) -> None:
        at = time.monotonic()
        links = "".join(f'<a href="/{number}">.</a>' for number in range(PAGES))
        body = b"" if self.path == "/robots.txt" else links.encode()
        head = b"%s 200 OK\r\n%bContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
        kept = b"" if self.protocol_version == "HTTP/1.1" else b"Connection: keep-alive\r\n"
        self.close_connection = False
        with self.lock:
            ended = time.monotonic()  # the crawl can know no earlier; a thread may stand still behind the answer
            self.wfile.write(head % (self.protocol_version.encode(), kept, len(body)) + body)
            self.asked.append((self.path, self.client_address[1], at, ended))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class OldSite(Site):
    """The same by HTTP/1.0, which keeps connections because it says so."""

    protocol_version = "HTTP/1.0"


class NewSite(Site):
    """The same by HTTP/1.1."""

    protocol_version = "HTTP/1.1"


def test_host_pauses_after_each_group_of_pages(tmp_path: Path) -> None:
    """Old and new servers: at most so many pages between two pauses, and all over one connection."""
    for kind in (OldSite, NewSite):
        Site.asked.clear()
        settings = {
            "BIGCRAWL_HOST_DELAY": DELAY_S,
            "BIGCRAWL_CONNECTION_PAGES": AT_ONCE,
            "BIGCRAWL_PARTITIONS": 2,
            "ROBOTSTXT_OBEY": False,
        }
        with at_work(ThreadingHTTPServer(("127.0.0.1", 0), kind)) as server:
            seeds = [f"http://127.0.0.1:{server.server_address[1]}/0"]
            with Crawl(tmp_path / kind.__name__, seeds, settings) as crawl:
                assert crawl.run(300) == 0
                assert f"after up to {AT_ONCE} pages" in crawl.log.read_text()
        pages = [one for one in Site.asked if one[0] != "/robots.txt"]
        assert sorted(path for path, *_ in pages) == sorted(f"/{number}" for number in range(PAGES))
        assert len({port for _, port, *_ in pages}) == 1, "all pages over one connection"
        gaps_s = [began - ended for (*_, ended), (_, _, began, _) in pairwise(pages)]
        group = 1
        for gap_s in gaps_s:
            group = group + 1 if gap_s < SHORTEST_S else 1
            assert group <= AT_ONCE
        assert sum(gap_s >= SHORTEST_S for gap_s in gaps_s) >= (PAGES - 1) // AT_ONCE
