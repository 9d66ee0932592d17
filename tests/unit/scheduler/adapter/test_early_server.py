"""The embedded server starts with the engine, and is left by whoever has it then."""

from __future__ import annotations

import subprocess
import sys
from threading import Event
from typing import TYPE_CHECKING

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from bigcrawl.clock import SystemClock
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.scheduler.adapter import early_server
from bigcrawl.scheduler.adapter.joining import Joining
from tests.support.redis_servers.embedded_users import servers_in
from tests.support.running.processes import no_strays_below, wait_until
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_strays(tmp_path: Path) -> Iterator[None]:
    with no_strays_below(tmp_path):
        yield


def test_server_that_was_begun_is_joined_and_left(tmp_path: Path) -> None:
    """By the start that waits for it: one server, one use, and none behind it."""
    config = make_config(tmp_path, "c")
    crawler = get_crawler(Spider)
    early_server.begin_server(crawler)
    assert early_server.begun_server(crawler) is None, "none was planned"
    early_server.plan_server(crawler, config.crawl)
    early_server.begin_server(crawler)
    joining = Joining(crawler, config, SystemClock())
    server = joining._embedded
    assert server is not None
    url = server.start()
    directory = config.crawl.crawl_dir / "redis"
    [pid] = servers_in(directory)
    assert server.start() == url
    assert (server.process.log_path.read_text()).count("Server initialized") == 1
    assert server.process.pid == pid
    server.leave()
    assert servers_in(directory) == []


def test_start_that_begins_after_it_was_given_up_leaves_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before the thread has had its turn."""
    start, leave, was_left = EmbeddedServer.start, EmbeddedServer.leave, Event()

    def start_late(server: EmbeddedServer) -> str:
        assert was_left.wait(120)
        return start(server)

    def leave_first(server: EmbeddedServer) -> None:
        leave(server)
        was_left.set()

    monkeypatch.setattr(EmbeddedServer, "start", start_late)
    monkeypatch.setattr(EmbeddedServer, "leave", leave_first)
    config, crawler = make_config(tmp_path, "c"), get_crawler(Spider)
    early_server.plan_server(crawler, config.crawl)
    early_server.begin_server(crawler)
    begun = early_server._begun[crawler]
    begun._give_up()
    assert not begun._thread.is_alive()
    assert servers_in(config.crawl.crawl_dir / "redis") == []
    assert early_server.begun_server(crawler) is not None


SCRIPT = """
import sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy import Spider

class One(Spider):
    name = "one"

class Broken:
    @classmethod
    def from_crawler(cls, crawler):
        raise RuntimeError("no such component")

process = AsyncCrawlerProcess({
    "ADDONS": {"bigcrawl.addon.Addon": 500}, "BIGCRAWL_STATE_DIR": sys.argv[1], "BIGCRAWL_WARC_DIR": None,
    "DOWNLOADER_MIDDLEWARES": {Broken: 1}, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
})
process.crawl(One)
process.start()
"""


def test_engine_that_cannot_be_made_leaves_no_server(tmp_path: Path) -> None:
    """The server was begun before the component that breaks the crawl; it ends with the process."""
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert "no such component" in told.stderr
    directory = tmp_path / "one" / "redis"
    wait_until(lambda: servers_in(directory) == [], "the server ends")
    assert "Server initialized" in (directory / "server.log").read_text(), told.stderr
