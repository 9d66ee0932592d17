"""Hosts that fail, in real crawls: all URLs of a host keep its Retry-After; a dead one is retired, and comes back."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import redis

from bigcrawl.views.opened_crawl import server_of
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.explained import explained
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PAGES = 12
QUICK: dict[str, Any] = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_STEP_SECONDS": 0.2}
Answer = tuple[int, dict[str, str]]


class Host(ThreadingHTTPServer):
    """A host at an address of its own; `answer` says what a path gets, `asked` is its log: (seconds, path, status).

    `rests` is how many seconds it rests before it answers, by path; a request is in the log before that.
    """

    daemon_threads = True

    def __init__(self, address: str, answer: Callable[[str], Answer], port: int = 0) -> None:
        self.answer = answer
        self.asked: list[tuple[float, str, int]] = []
        self.rests: dict[str, float] = {}
        super().__init__((address, port), Handler)

    def urls(self, *paths: str) -> list[str]:
        return [f"http://{self.server_address[0]!s}:{self.server_address[1]}{path}" for path in paths]

    @property
    def pages(self) -> list[tuple[float, str, int]]:
        return [row for row in self.asked if row[1] != "/robots.txt"]


class Handler(BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        status, headers = (404, {}) if self.path == "/robots.txt" else self.server.answer(self.path)
        self.server.asked.append((time.monotonic(), self.path, status))
        time.sleep(self.server.rests.get(self.path, 0))
        body = b"<html></html>"
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing is printed."""


@contextmanager
def serving(address: str, answer: Callable[[str], Answer], port: int = 0) -> Iterator[Host]:
    with at_work(Host(address, answer, port)) as host:
        yield host


def paths() -> list[str]:
    return [f"/{number}" for number in range(PAGES)]


def well(path: str) -> Answer:
    return 200, {}


def let_time_pass(crawl: Crawl, host: str, ms: int) -> None:
    """Since a host has failed: awakened, it is not asked before a minute is over."""
    with server_of(crawl.config()) as server, redis.Redis.from_url(server) as client:
        [record] = client.scan_iter(f"bigcrawl:{{{crawl.name}:p*}}:host:{host}")
        client.hincrby(record, "failed", -ms)


def test_retry_after_is_kept_by_all_urls_of_the_host(tmp_path: Path) -> None:
    """Two refusals in a row: the host is silent for as long as it asked, then all its pages come; nobody else waits."""
    refusals = [2, 3]

    def overloaded(path: str) -> Answer:
        if len(busy.pages) >= 4 and refusals:
            return 429, {"Retry-After": str(refusals.pop(0))}
        return well(path)

    with no_strays_below(tmp_path), serving("127.0.21.1", overloaded) as busy, serving("127.0.21.2", well) as fine:
        crawl = Crawl(tmp_path / "crawl", busy.urls(*paths()) + fine.urls(*paths()), QUICK)
        with crawl:
            assert crawl.run(300) == 0
        refused = [at for at, row in enumerate(busy.pages) if row[2] == 429]
        gaps = [busy.pages[at + 1][0] - busy.pages[at][0] for at in refused]
        assert len(gaps) == 2
        assert gaps[0] >= 2
        assert gaps[1] >= 3
        assert busy.pages[refused[0]][1] != busy.pages[refused[0] + 1][1], "another page is the next try"
        assert sorted(path for _, path, code in busy.pages if code == 200) == sorted(paths())
        silent_s, over_s = busy.pages[refused[0]][0], busy.pages[refused[1] + 1][0]
        before, later = (sum(at < time_s for at, *_ in fine.pages) for time_s in (silent_s, over_s))
        assert before < later or before == PAGES, "the other host's pages came meanwhile"
        outcomes = {said["outcome"]["name"] for said in explained(crawl, busy.urls(*paths())).values()}
        assert outcomes == {"status:200"}


@pytest.mark.long("a crawl that backs off to the end; the node alone: tests/unit/scheduler/owner/test_parking.py")
def test_host_that_dies_is_retired_and_awakened(tmp_path: Path) -> None:
    """The crawl ends without it, its URLs are kept and explained; awakened, each is fetched, and none twice."""
    settings = {
        **QUICK,
        "BIGCRAWL_BACKOFF": 0.2,
        "BIGCRAWL_BACKOFF_MAX": 0.4,
        "BIGCRAWL_HOST_FAILURES_MAX": 6,
        "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
    }
    with no_strays_below(tmp_path), serving("127.0.21.4", well) as fine:
        with serving("127.0.21.3", well) as dying:
            port = dying.server_address[1]
            urls = dying.urls(*paths())
            crawl = Crawl(tmp_path / "crawl", urls + fine.urls(*paths()), {**settings, "BIGCRAWL_HOST_DELAY": 0.5})
            crawl.start()
            wait_until(lambda: len(dying.pages) >= 3, "some pages are fetched")
        with crawl:
            assert crawl.wait(300) == 0
            assert "finished; " in crawl.log.read_text()
            before = [path for _, path, _ in dying.pages]
            said = explained(crawl, urls)
            kept = [url for url in urls if said[url]["where"] == "withheld"]
            assert {said[url]["host_state"] for url in kept} == {"retired"}
            assert {said[url]["host_failed_by"] for url in kept} <= {"error:refused", "error:connection"}
            assert len(kept) >= PAGES - len(before) - 1
            assert "retired: failed 6 times in a row" in crawl.frontier("explain", kept[0]).stdout

            assert crawl.run(300) == 0, "a restart does not forget it"
            assert explained(crawl, kept[:1])[kept[0]]["host_state"] == "retired"

            let_time_pass(crawl, "127.0.21.3", 60_000)
            with serving("127.0.21.3", well, port) as back:
                assert crawl.frontier("awaken", "127.0.21.3").stdout == "awakened: 127.0.21.3\n"
                assert crawl.frontier("awaken", "127.0.21.3", check=False).returncode == 1
                assert crawl.frontier("awaken", "--all").stdout.strip() == "", "no other has failed"
                crawl.start()
                wait_until(lambda: len(back.pages) == len(kept), "the rest comes")
                assert crawl.wait(300) == 0
                after = [path for _, path, _ in back.pages]
            assert sorted(after) == sorted(url.rpartition("/")[2].join(["/", ""]) for url in kept)
            assert not set(before) & set(after)
            ends = {url: said["outcome"]["name"] for url, said in explained(crawl, urls).items()}
            assert {url for url, end in ends.items() if end == "status:200"} >= set(kept)
            assert set(ends.values()) <= {"status:200", "error:refused", "error:connection"}


def test_last_failure_is_the_outcome_and_ends_the_crawl(tmp_path: Path) -> None:
    """One URL on a host that never answers: its tries are finite, and the last one is told."""
    settings = {**QUICK, "BIGCRAWL_BACKOFF": 0.1, "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts", "RETRY_TIMES": 2}
    always = 503, {"Retry-After": "soon"}
    with no_strays_below(tmp_path), serving("127.0.21.5", lambda _: always) as host:
        crawl = Crawl(tmp_path / "crawl", host.urls("/only"), settings)
        with crawl:
            assert crawl.run(300) == 0
        assert len(host.pages) == 3, "no other URL has failed there: all tries are its own"
        [said] = explained(crawl, host.urls("/only")).values()
        assert (said["where"], said["outcome"]["name"]) == ("ended", "status:503")
        assert said["host_failures"] == 3


@pytest.mark.long("waits for a host; the one that dies later is awakened here, too")
def test_host_that_is_dead_at_first_contact_is_kept_for_later(tmp_path: Path) -> None:
    """Nobody listens there: the crawl ends soon after its last page, drops nothing, and what is kept comes later."""
    # Not reached before two minutes have passed: on a busy machine it may take long until no other host is left.
    settings = {**QUICK, "BIGCRAWL_BACKOFF": 0.5, "BIGCRAWL_BACKOFF_MAX": 4, "BIGCRAWL_HOST_FAILURES_MAX": 40}
    with no_strays_below(tmp_path), serving("127.0.21.7", well) as fine:
        with serving("127.0.21.6", well) as gone:
            urls = gone.urls(*paths())
            port = gone.server_address[1]
        crawl = Crawl(tmp_path / "crawl", urls + fine.urls(*paths()), settings)
        with crawl:
            assert crawl.run(300) == 0
            assert len(fine.pages) == PAGES
            assert "12 URLs are withheld: no budget lets them go, or their host is one of the 1 retired" in (
                crawl.log.read_text()
            )
            said = explained(crawl, urls)
            assert {(one["where"], one["host_state"], one["host_failed_by"]) for one in said.values()} == {
                ("withheld", "retired", "robots")
            }
            assert 4 <= said[urls[0]]["host_failures"] < 40, "fewer than while other hosts are left"
            let_time_pass(crawl, "127.0.21.6", 60_000)
            with serving("127.0.21.6", well, port) as back:
                for words in (("awaken",), ("awaken", "127.0.21.6", "--all")):
                    refused = crawl.frontier(*words, check=False)
                    assert refused.returncode == 1
                    assert "awaken needs either hosts, or --all" in refused.stderr
                assert crawl.frontier("awaken", "--all").stdout == "awakened: 127.0.21.6\n"
                crawl.start()
                wait_until(lambda: len(back.pages) == PAGES, "all its pages come")
                assert crawl.wait(300) == 0
