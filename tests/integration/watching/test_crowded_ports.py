"""Whoever keeps connections to a node's pages takes neither its fetches, nor its files, nor the pages of others."""

from __future__ import annotations

import re
import resource
import socket
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from tests.integration.watching.test_dashboard import ask, port_in
from tests.integration.watching.test_dashboard import settings_of as dashboard_settings
from tests.integration.watching.test_metrics import port_of, scrape, settings_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import assert_complete, pause
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES_MAX = 1_024  # what a system permits by default
OVER_MAX = FILES_MAX + 100
SLOW = 64
AT_ONCE = 25  # half of what the system lets wait for a node
HEAD_SO_FAR = b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: "


@pytest.fixture(autouse=True)
def _no_strays(tmp_path: Path) -> Iterator[None]:
    with no_strays_below(tmp_path):
        yield


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may open more files than a node."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(before[1], 4 * FILES_MAX)), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect(held: ExitStack, port: int) -> socket.socket:
    return held.enter_context(socket.create_connection(("127.0.0.1", port), 60))


@pytest.mark.long("a crawl of twenty hosts; tests/unit/serving asks the same of three connections")
def test_idle_connections_take_no_descriptor_of_a_crawl(tmp_path: Path, many_files: None) -> None:
    """There are more of them than files that the node may open, for as long as it crawls."""
    with (
        SimulatedWeb(tmp_path / "web", hosts=20, pages=16) as web,
        Crawl(tmp_path / "crawl", web.seeds, settings_of(BIGCRAWL_CLOSE="until-empty", BIGCRAWL_HOST_DELAY=1)) as crawl,
        ExitStack() as held,
    ):
        process = crawl.start()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))
        port = port_of(crawl)
        wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
        for number in range(OVER_MAX):
            connect(held, port)
            if number % AT_ONCE == 0:
                pause(0.05)  # further ones would be tried again after a second
        fetched = {(each.host, each.target) for each in web.exchanges()}
        assert len(fetched) < len(web.expected()) // 2, "most of the crawl is still to come"
        wait_until(lambda: len(web.exchanges()) > len(fetched) + 80, "fetches go on")
        assert scrape(port)[0] == 200
        assert crawl.wait(300) == 0
        assert "Too many open files" not in crawl.log.read_text()
        assert_complete(web.report(delay_ms=1_000))


def test_slow_connections_lock_nobody_out(tmp_path: Path) -> None:
    """As many of them as there may be, each with half a request, which it goes on sending."""
    with (
        SimulatedWeb(tmp_path / "web", hosts=2, pages=2) as web,
        Crawl(tmp_path / "crawl", web.seeds, dashboard_settings()) as crawl,
        ExitStack() as held,
    ):
        crawl.start()
        port = port_in(crawl.log)
        slow = [connect(held, port) for _ in range(SLOW)]
        for part in (HEAD_SO_FAR, b"x"):
            for connection in slow:
                with suppress(ConnectionError):  # it had to make room
                    connection.sendall(part)
            assert ask(port, "status")[0] == 200
        crawl.terminate()
        assert crawl.wait(300) == 0
    assert re.search("Traceback", crawl.log.read_text()) is None
