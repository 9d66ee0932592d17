"""How a crawl ended, as a supervisor sees it, row by row of the table in docs/operations.md: status, and last line."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
SLOW: dict[str, Any] = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 10}  # not over when it is to be ended
QUICK: dict[str, Any] = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0, "RETRY_ENABLED": 0}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=2, pages=5) as one:
        yield one


def rows() -> dict[str, tuple[str, str]]:
    """The table: status and reason by how it ended."""
    table = PAGE.read_text("utf-8").partition("## Exit statuses")[2].partition("\n\n`scrapy frontier` exits")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] != "|--"]
    found = {row[1]: (row[0], row[2]) for row in cells if len(row) == 4}
    return {how: (status, reason.strip("`")) for how, (status, reason) in found.items()}


def ended(crawl: Crawl) -> tuple[str, str]:
    """Wait for the end. Returns the status, and why the log says that the spider was closed; "" if it does not."""
    status = crawl.wait(300)
    closed = re.findall(r"Spider closed \(\w+\)", crawl.log.read_text())
    return str(status), closed[-1] if closed else ""


def has_pages(web: SimulatedWeb) -> Callable[[], bool]:
    """A condition: more has been fetched than now."""
    before = len(web.exchanges())
    return lambda: len(web.exchanges()) > before


def test_crawl_that_ends_by_itself(web: SimulatedWeb, tmp_path: Path) -> None:
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, QUICK) as crawl:
        crawl.start()
        assert ended(crawl) == rows()["it is finished"]


def test_crawl_that_has_all_the_pages_it_may(web: SimulatedWeb, tmp_path: Path) -> None:
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, {**QUICK, "BIGCRAWL_MAX_PAGES": 3}) as crawl:
        crawl.start()
        assert ended(crawl) == rows()["it has `BIGCRAWL_MAX_PAGES` pages"]


def test_crawl_that_is_stopped(web: SimulatedWeb, tmp_path: Path) -> None:
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, SLOW) as crawl:
        is_running = has_pages(web)
        crawl.start()
        wait_until(is_running, "pages")
        crawl.terminate()
        assert ended(crawl) == rows()["it was stopped: Ctrl-C, SIGTERM, scrapyd's cancel"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"BIGCRAWL_PARTITIONS": "many"}, "BIGCRAWL_PARTITIONS"),
        ({"BIGCRAWL_REDIS_URL": "unix:///nowhere/redis.sock", "BIGCRAWL_START_WAIT": 0}, "Redis does not answer"),
        ({"BIGCRAWL_STATE_DIR": "/proc/nowhere"}, "/proc/nowhere"),
    ],
)
def test_crawl_that_cannot_start(web: SimulatedWeb, tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, {**QUICK, **settings}) as crawl:
        crawl.start()
        assert ended(crawl) == rows()["it could not start; an ERROR line says why"]
        [error] = [line for line in crawl.log.read_text().splitlines() if " ERROR: " in line]
        assert says in error


def test_crawl_that_meets_what_waiting_does_not_mend(web: SimulatedWeb, tmp_path: Path) -> None:
    """Its Redis no longer permits what it needs."""
    with PrivateRedis() as redis, Crawl(tmp_path, web.seeds, {**SLOW, "BIGCRAWL_REDIS_URL": redis.url}) as crawl:
        is_running = has_pages(web)
        crawl.start()
        wait_until(is_running, "pages")
        redis.client.execute_command("ACL SETUSER", "default", "-zadd", "-zpopmin")
        assert ended(crawl) == rows()["it met an error that waiting does not mend; an ERROR line says which"]
        assert "does not permit" in crawl.log.read_text()


def test_crawl_that_is_killed(web: SimulatedWeb, tmp_path: Path) -> None:
    with no_strays_below(tmp_path), Crawl(tmp_path, web.seeds, SLOW) as crawl:
        is_running = has_pages(web)
        crawl.start()
        wait_until(is_running, "pages")
        crawl.kill()
        assert ended(crawl) == (str(-signal.SIGKILL), "")
    assert rows()["it was killed"][0] == f"128 plus the signal: {128 + signal.SIGKILL} after kill -9"
