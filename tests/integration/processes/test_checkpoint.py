"""`scrapy frontier checkpoint`, on a live crawl, one whose node does not answer, and one that is stopped."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import redis

PARTITIONS = 4


def inbox_entries(client: redis.Redis) -> int:
    return sum(client.xlen(f"bigcrawl:{{test:p{partition}}}:inbox") for partition in range(PARTITIONS))


@pytest.mark.long("waits for a point of every partition: tests/unit/scheduler/owner")
def test_operator_makes_everything_durable(tmp_path: Path) -> None:
    """A point of every partition at once, long before its time; inboxes are trimmed behind the point before it.

    While a node does not answer, its partitions are named. Of a crawl that was stopped, or killed, all is durable or is
    made so, except what is on no disk here.
    """
    settings = {"BIGCRAWL_PARTITIONS": PARTITIONS, "BIGCRAWL_HOST_DELAY": 2, "BIGCRAWL_DURABLE_SECONDS": 600}
    settings["BIGCRAWL_LEASE_SECONDS"] = 40  # a node that is stopped is one for longer than a command takes
    with (
        PrivateRedis() as server,
        SimulatedWeb(tmp_path / "web", hosts=8, pages=60) as web,
        Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_REDIS_URL": server.url}) as crawl,
        crawl.redis() as client,
    ):
        process = crawl.start()
        wait_until(lambda: len(web.exchanges()) > 10, "pages are fetched")
        crawl.frontier("pause")
        wait_until(lambda: crawl.status()["urls"]["inbox"] == 0, "what was found is merged")
        assert inbox_entries(client) > 0
        first = crawl.asked("checkpoint")
        assert (first["running"], first["partitions"], first["missing"]) == (True, PARTITIONS, [])

        def is_trimmed() -> bool:
            assert "all 4 partitions are durable now" in crawl.frontier("checkpoint").stdout
            return inbox_entries(client) == 0

        wait_until(is_trimmed, "inboxes are trimmed behind an earlier point")

        process.send_signal(signal.SIGSTOP)
        said = crawl.frontier("checkpoint", "--timeout", "1", check=False)
        process.send_signal(signal.SIGCONT)
        assert said.returncode == 1
        assert "4 of 4 partitions are not durable" in said.stdout
        assert ": no answer" in said.stdout

        crawl.kill()
        wait_until(lambda: not crawl.status()["nodes"], "the lease of the dead node has expired", timeout_s=200)
        assert "no node runs" in crawl.status()["standstill"]
        assert "all 4 partitions are durable; no node runs" in crawl.frontier("checkpoint").stdout
        moved = min((crawl.directory / "state" / "test").glob("p*"))  # a partition without hosts has no directory
        shutil.move(moved, tmp_path / "away")
        lost = crawl.frontier("checkpoint", check=False)
        assert lost.returncode == 1
        assert "1 of 4 partitions are not durable" in lost.stdout
        assert f"partition {int(moved.name[1:])} " in lost.stdout


def test_wrong_timeout_is_a_line(tmp_path: Path) -> None:
    """A time that is none is refused before anything is asked."""
    with Crawl(tmp_path / "crawl", []) as crawl:
        for words, status in ((("--timeout", "soon"), 2), (("--timeout", "0"), 1), (("now",), 2)):
            done = crawl.frontier("checkpoint", *words, check=False)
            assert done.returncode == status
            assert done.stderr.count("\n") == 1
