"""Crawls on a Redis Cluster of three masters with a replica each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.crawling.verdicts import refetched_without_cause
from tests.support.redis_servers.redis_cluster import PrivateCluster
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long("a crawl through the death of a master; tests/unit/redisdb has one for each call")

DELAY_MS = 200
SETTINGS = {
    "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
    "BIGCRAWL_PARTITIONS": 24,
    "BIGCRAWL_STEP_SECONDS": 0.5,
    "BIGCRAWL_LEASE_SECONDS": 15,
}


def test_crawl_of_two_nodes_goes_on_when_a_master_dies_and_its_replica_takes_over(tmp_path: Path) -> None:
    """Twice. Nothing is lost, no host is asked too soon, and only what a replica had not received is fetched again."""
    with (
        no_strays_below(tmp_path),
        PrivateCluster(replicas=True) as cluster,
        SimulatedWeb(tmp_path / "web", hosts=30, pages=15) as web,
    ):
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": cluster.url}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as first, second_process_of(first) as second:
            first.start()
            second.start()
            lost_ms = []
            for index, fetched in ((0, 100), (2, 220)):
                wait_until(lambda fetched=fetched: len(web.exchanges()) >= fetched, "pages are fetched", timeout_s=120)  # type: ignore[misc]
                lost_ms.append(cluster.fail_over(index))
            assert (first.wait(300), second.wait(300)) == (0, 0)
        report = web.report(delay_ms=DELAY_MS)
        assert report.kinds <= {"refetched"}, str(report)
        assert refetched_without_cause(web, report, lost_ms) == []
        for crawl in (first, second):
            assert "Traceback" not in crawl.log.read_text()
