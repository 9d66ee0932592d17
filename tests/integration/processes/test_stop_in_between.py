"""A stop is heard while the crawl opens and while it closes: no server is left, and the next start goes on."""

from __future__ import annotations

import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb.embedded import running_url
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(900)

FEW: dict[str, Any] = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0, "RETRY_ENABLED": 0}
PIPELINE = """
import asyncio, logging

class Slow:
    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def open_spider(self):
        await self.wait("opening")

    async def close_spider(self):
        await self.wait("closing")

    async def wait(self, when):
        if self.crawler.settings["SLOW"] != when:
            return
        logging.info("slow: %s", when)
        while self.crawler.crawling or self.crawler.settings.getbool("FOR_EVER"):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # what Scrapy would end with the process
        logging.info("slow: done")
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=2, pages=5) as one:
        yield one


@contextmanager
def crawl_with_pipeline(tmp_path: Path, web: SimulatedWeb) -> Iterator[Crawl]:
    (tmp_path / "slow.py").write_text(PIPELINE)
    settings = {**FEW, "ITEM_PIPELINES": '{"slow.Slow": 100}'}
    with (
        no_strays_below(tmp_path),
        Crawl(tmp_path, web.seeds, settings, environment={"PYTHONPATH": str(tmp_path)}) as crawl,
    ):
        yield crawl


def wait_for(crawl: Crawl, line: str) -> None:
    wait_until(lambda: line in crawl.log.read_text(), line, timeout_s=300)


def assert_stopped(crawl: Crawl) -> str:
    """It ends as one that is stopped, and leaves nothing at work. Returns its log."""
    assert crawl.wait(300) == 0
    log = crawl.log.read_text()
    assert "Traceback" not in log
    assert " ERROR: " not in log
    assert running_url(crawl.redis_directory) is None, "no embedded server is left"
    assert not list(crawl.directory.glob("state/test/nodes/*.lock"))
    return log


def test_stop_while_the_crawl_opens(tmp_path: Path, web: SimulatedWeb) -> None:
    with crawl_with_pipeline(tmp_path, web) as crawl:
        crawl.start(SLOW="opening")
        wait_for(crawl, "slow: opening")
        crawl.send(signal.SIGINT)
        log = assert_stopped(crawl)
        assert "stopped before the crawl was open" in log
        assert "Spider closed (shutdown)" in log
        assert crawl.run() == 0
        assert "Spider closed (finished)" in crawl.log.read_text()


def test_stop_while_the_embedded_server_starts(tmp_path: Path, web: SimulatedWeb) -> None:
    """Whether the node has joined by then or not."""
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, {**FEW, "BIGCRAWL_HOST_DELAY": 10}) as crawl:
        crawl.start()
        wait_for(crawl, "the embedded server in")
        crawl.terminate()
        assert "Spider closed (shutdown)" in assert_stopped(crawl)


def test_stop_while_redis_hangs_at_the_start(tmp_path: Path, web: SimulatedWeb) -> None:
    """A start that does not come to its end is given up."""
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(tmp_path / "hung.sock"))
        hung.listen()
        settings = {**FEW, "BIGCRAWL_REDIS_URL": f"unix://{tmp_path / 'hung.sock'}", "BIGCRAWL_START_WAIT": 3600}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            crawl.start()
            connection, _ = hung.accept()
            crawl.terminate()
            assert "Spider closed (shutdown)" in assert_stopped(crawl)
            connection.close()


def test_stop_while_the_crawl_closes(tmp_path: Path, web: SimulatedWeb) -> None:
    """What closes is closed to the end, and the summary is printed."""
    with crawl_with_pipeline(tmp_path, web) as crawl:
        crawl.start(SLOW="closing")
        wait_for(crawl, "slow: closing")
        crawl.terminate()
        log = assert_stopped(crawl)
        assert "slow: done" in log
        assert "Spider closed (finished)" in log
        assert "crawl test: finished" in log


@pytest.mark.parametrize(
    "when", [pytest.param("closing", marks=pytest.mark.long("a second signal while the crawl opens")), "opening"]
)
def test_second_signal_ends_what_does_not_end(tmp_path: Path, web: SimulatedWeb, when: str) -> None:
    with crawl_with_pipeline(tmp_path, web) as crawl:
        crawl.start(SLOW=when, FOR_EVER=1)
        wait_for(crawl, f"slow: {when}")
        crawl.terminate()
        wait_for(crawl, "Received SIGTERM")
        crawl.terminate()
        assert crawl.wait(300) == 0
        assert "slow: done" not in crawl.log.read_text()


def test_scheduler_that_cannot_be_made_ends_the_process(tmp_path: Path, web: SimulatedWeb) -> None:
    """Nothing is waited for: there is no crawl that could be closed."""
    settings = {"SCHEDULER": "tests.integration.processes.raising_scheduler.RaisingScheduler"}
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, settings) as crawl:
        assert crawl.start().wait(300) == 1
        assert "no scheduler for broad" in crawl.log.read_text()
