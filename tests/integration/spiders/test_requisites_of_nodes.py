"""Requisites on hosts of another node: two nodes fetch them politely, also when one of them is killed."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import pytest

from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.views.opened_crawl import in_crawl
from tests.support.crawling.crawls import Crawl, second_process_of, shares
from tests.support.crawling.everything import stored
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.arrivals import arrived_s
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.views.opened_crawl import OpenedCrawl

HOSTS: Final = 16
PAGES: Final = 10
"""Of each host, after both nodes have their half."""
PICTURES: Final = 3
"""Of each page, on as many other hosts."""
DELAY_S: Final = 0.2
PARTITIONS: Final = 16
TYPES: Final = {"html": "text/html", "css": "text/css", "png": "image/png", "woff": "font/woff", "txt": "text/plain"}


class Fetch(NamedTuple):
    """By the seconds of the monotonic clock at which it came in and was answered."""

    begin: float
    end: float
    url: str


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, number: int, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__((f"127.0.3.{number + 1}", 0), handler)
        self.number = number

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that was killed."""


class Web:
    """Hosts with pages that need files of other hosts: pictures, and a style sheet that needs a font.

    Each page leads to the next one of its host, without end until `end` is called.
    """

    def __init__(self) -> None:
        self.fetches: list[Fetch] = []
        self._page = 0
        self._pages: int | None = None  # of each host, once it is known
        self._lock = threading.Lock()
        web = self

        class Handler(BaseHTTPRequestHandler):
            server: _Server
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                begin = arrived_s(self.connection)
                host = self.server.number
                body = web.body(host, self.path).encode()
                self.send_response(200)
                self.send_header("Content-Type", TYPES[self.path.rpartition(".")[2]])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with web._lock:  # known before the answer is, and its end a little early
                    web.fetches.append(Fetch(begin, time.monotonic(), f"{web.root(host)}{self.path}"))
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.servers = [_Server(number, Handler) for number in range(HOSTS)]

    @contextmanager
    def serving(self) -> Iterator[None]:
        with ExitStack() as stack:
            for server in self.servers:
                stack.enter_context(at_work(server))
            yield

    def end(self) -> None:
        """End `PAGES` behind the last page that any host was asked for."""
        with self._lock:
            self._pages = self._page + PAGES

    def root(self, host: int) -> str:
        address, port = self.servers[host % HOSTS].server_address[:2]
        return f"http://{address!s}:{port}"

    def fetched(self) -> Counter[str]:
        return Counter(one.url for one in self.fetches if not one.url.endswith("/robots.txt"))

    @property
    def seeds(self) -> list[str]:
        return [f"{self.root(host)}/0.html" for host in range(HOSTS)]

    def pictures(self, host: int, page: int) -> list[str]:
        return [f"{self.root(host + 1 + number)}/{host}-{page}.png" for number in range(PICTURES)]

    def expected(self) -> set[str]:
        assert self._pages is not None
        pages = [(host, page) for host in range(HOSTS) for page in range(self._pages)]
        files = [url for host in range(HOSTS) for url in (self._sheet(host), self._font(host))]
        pictures = [url for host, page in pages for url in self.pictures(host, page)]
        return {*(f"{self.root(host)}/{page}.html" for host, page in pages), *files, *pictures}

    def body(self, host: int, path: str) -> str:
        name, _, ending = path.strip("/").rpartition(".")
        if path == "/robots.txt":
            return "User-agent: *\nDisallow: /private/\n"
        if ending == "css":
            return f"@font-face {{src: url({self._font(int(name))})}} p {{background: url({self._forbidden(host)})}}"
        if ending != "html":
            return path
        with self._lock:
            page = int(name)
            self._page = max(page, self._page)
            has_next = self._pages is None or page + 1 < self._pages
        shown = "".join(f"<img src={url}>" for url in (*self.pictures(host, page), self._forbidden(host)))
        following = f"<a href=/{page + 1}.html>.</a>" if has_next else ""
        return f"<title>{host} {page}</title><link rel=stylesheet href={self._sheet(host)}>{shown}{following}"

    def _sheet(self, host: int) -> str:
        return f"{self.root(host + 1)}/{host}.css"

    def _font(self, host: int) -> str:
        return f"{self.root(host + 2)}/{host}.woff"

    def _forbidden(self, host: int) -> str:
        return f"{self.root(host + 3)}/private/{host}.png"


def owners(crawl: Crawl, web: Web) -> dict[str, bytes | None]:
    """The node that owns each host."""

    async def partitions(opened: OpenedCrawl) -> dict[str, int]:
        return {url: opened.place_of(url).partition for url in web.seeds}

    with crawl.redis() as client:
        return {
            url: client.hget(PartitionKeys(crawl.name, partition).owner, "node")
            for url, partition in in_crawl(crawl.config(), partitions).items()
        }


def assert_is_polite(web: Web) -> None:
    """Each host is asked for its robots.txt first, for nothing that it forbids, and rests after each answer."""
    for host in range(HOSTS):
        fetches = sorted(one for one in web.fetches if one.url.startswith(f"{web.root(host)}/"))
        paths = [urlsplit(one.url).path for one in fetches]
        assert paths[0] == "/robots.txt"
        assert not [path for path in paths if path.startswith("/private/")]
        least = min(later.begin - earlier.end for earlier, later in pairwise(fetches))
        assert least >= DELAY_S - 0.012, least  # a time of arrival is a tick of the kernel early at most


@pytest.mark.long("two nodes, and a kill amid requisites; one node of fewer pages: test_requisites.py")
def test_requisites_on_hosts_of_another_node_are_fetched_over_its_kill(tmp_path: Path) -> None:
    """All of each page are in the WARC files; none twice but what the killed node had in process."""
    web = Web()
    settings = {"BIGCRAWL_HOST_DELAY": DELAY_S, "BIGCRAWL_PARTITIONS": PARTITIONS, "BIGCRAWL_REQUISITES": "any"}
    first = Crawl(tmp_path / "crawl", web.seeds, settings)
    with no_strays_below(tmp_path), web.serving(), first, second_process_of(first) as second:
        first.start()
        wait_until(lambda: len(web.fetches) > HOSTS, "the crawl is under way")
        second.start()
        wait_until(lambda: shares(first) == [PARTITIONS // 2] * 2, "each node owns half")
        assert len(set(owners(first, web).values())) == 2
        web.end()
        middle = (len(web.fetched()) + len(web.expected())) // 2
        wait_until(lambda: len(web.fetched()) > middle, "both fetch")
        second.send(signal.SIGSTOP)
        may_repeat = Counter(first.taken())
        second.kill()
        may_repeat |= Counter(first.taken())
        assert set(web.fetched()) < web.expected(), "it is in the middle"
        assert first.wait(300) == 0
        assert first.run() == 0, "and closes the file of the killed node"
        logs = [path.read_text() for path in first.directory.rglob("log*.txt")]
    assert len(logs) == 3
    assert "Traceback" not in "".join(logs)
    fetched = web.fetched()
    assert set(fetched) == web.expected()
    assert fetched - Counter(web.expected()) <= may_repeat
    found = stored(tmp_path / "crawl" / "warc")
    assert web.expected() <= set(found)
    assert Counter({url: found[url] for url in web.expected()}) <= fetched
    assert_is_polite(web)
