"""The embedded server starts with the engine, and no process that ends, however it does, leaves it running."""

from __future__ import annotations

import asyncio
import signal
from threading import Event
from typing import TYPE_CHECKING

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from bigcrawl.clock import SystemClock
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.scheduler.adapter import early_server
from bigcrawl.scheduler.adapter.joining import CrawlJoin
from tests.support.redis_servers.embedded_users import servers_in
from tests.support.running import warm
from tests.support.running.processes import no_strays_below, wait_until
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_strays(tmp_path: Path) -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # Scrapy has set its handler before it makes an engine
    try:
        with no_strays_below(tmp_path):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def test_server_that_was_begun_is_joined_and_left(tmp_path: Path) -> None:
    """By the start that waits for it: one server, one use, and none behind it."""
    config = make_config(tmp_path, "c")
    crawler = get_crawler(Spider)
    early_server.begin_server(crawler)
    assert early_server.begun_server(crawler) is None, "none was planned"
    early_server.plan_server(crawler, config.crawl)
    early_server.begin_server(crawler)
    joining = CrawlJoin(crawler, config, SystemClock())
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
    """The crawl is called off before the thread has had its turn."""
    start, leave, was_left = EmbeddedServer.start, EmbeddedServer.leave, Event()

    def start_late(server: EmbeddedServer) -> str:
        assert was_left.wait(120)
        return start(server)

    def leave_first(server: EmbeddedServer, within_ms: int) -> None:
        leave(server, within_ms)
        was_left.set()

    monkeypatch.setattr(EmbeddedServer, "start", start_late)
    monkeypatch.setattr(EmbeddedServer, "leave", leave_first)
    config, crawler = make_config(tmp_path, "c"), get_crawler(Spider)
    early_server.plan_server(crawler, config.crawl)
    early_server.begin_server(crawler)
    joining = CrawlJoin(crawler, config, SystemClock())
    begun = joining._embedded
    assert begun is not None
    assert begun._early is not None
    asyncio.run(joining.leave(lambda: 60_000))
    assert not begun._early.is_alive()
    assert servers_in(config.crawl.crawl_dir / "redis") == []


def test_no_server_is_begun_that_a_signal_would_leave_behind(tmp_path: Path) -> None:
    """SIGTERM ends the process at once as long as nobody has set a handler; the event loop starts the server later."""
    config, crawler = make_config(tmp_path, "c"), get_crawler(Spider)
    early_server.plan_server(crawler, config.crawl)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    early_server.begin_server(crawler)
    assert early_server.begun_server(crawler) is None
    assert servers_in(config.crawl.crawl_dir / "redis") == []


SCRIPT = """
import signal, sys
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy import Spider
from bigcrawl.scheduler.scheduler import Scheduler

state, how = sys.argv[1:]

class One(Spider):
    name = "one"

def broken(*_):
    raise RuntimeError("no such component")

class Broken:
    from_crawler = broken

class BrokenStart:
    process_start = broken

async def end(self, spider):
    await self._joining._start_embedded()
    raise SystemExit("the interpreter ends")

settings = {
    "ADDONS": {"bigcrawl.addon.Addon": 500}, "BIGCRAWL_STATE_DIR": state, "BIGCRAWL_WARC_DIR": None,
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
}
if how == "component":
    settings["DOWNLOADER_MIDDLEWARES"] = {Broken: 1}
elif how == "scraper":
    settings["SPIDER_MIDDLEWARES"] = {Broken: 1}
elif how == "start":
    settings["SPIDER_MIDDLEWARES"] = {BrokenStart: 1}
elif how == "exit":
    Scheduler._open = end
if how == "signal":
    process = CrawlerProcess(settings)
    process.crawl(One)
    signal.raise_signal(signal.SIGTERM)
process = AsyncCrawlerProcess(settings)
process.crawl(One)
process.start()
"""


@pytest.mark.parametrize("how", ["component", "scraper", "start", "exit", "signal"])
def test_process_that_opens_no_crawl_leaves_no_server(tmp_path: Path, how: str) -> None:
    """Whatever ends it between the start of the server and that of the crawl: an error, an exit, a signal."""
    (tmp_path / "early.py").write_text(SCRIPT)
    ended = warm.run(["early", str(tmp_path), how], cwd=tmp_path)
    assert (ended.returncode == -signal.SIGTERM) == (how == "signal"), ended.stderr
    said = {"exit": "the interpreter ends", "signal": ""}
    assert said.get(how, "no such component") in ended.stderr
    directory = tmp_path / "one" / "redis"
    wait_until(lambda: servers_in(directory) == [], "the server ends")
    assert how == "signal" or "Server initialized" in (directory / "server.log").read_text(), ended.stderr
