"""Two nodes without a shared disk: what one has, the other gets from the store, even after kill -9."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, shares
from tests.support.crawling.verdicts import assert_complete, without_untold_gaps
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

DELAY_MS = 300


def test_a_survivor_with_its_own_disk_loses_nothing_of_a_killed_node(tmp_path: Path) -> None:
    """Coverage is 1, and only URLs that were taken at the kill are fetched again."""
    with (
        no_strays_below(tmp_path),
        SimulatedWeb(tmp_path / "web", hosts=16, pages=30) as web,
        PrivateRedis() as server,
    ):
        settings = {
            "BIGCRAWL_REDIS_URL": server.url,
            "BIGCRAWL_STORE_URL": f"file://{tmp_path / 'store'}",
            "BIGCRAWL_STORE_SECONDS": 2,
            "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
            "BIGCRAWL_PARTITIONS": 16,
            "BIGCRAWL_LEASE_SECONDS": 8,
            "BIGCRAWL_FETCH_DEADLINE": 8,
        }
        may_repeat: Counter[str] = Counter()
        with (
            Crawl(tmp_path / "first", web.seeds, dict(settings)) as first,
            Crawl(tmp_path / "second", web.seeds, dict(settings)) as second,
        ):
            first.start()
            wait_until(lambda: len(web.exchanges()) > 40, "the crawl is under way")
            second.start()
            wait_until(lambda: shares(second) == [8, 8], "each node owns half", timeout_s=120)
            before = len(web.exchanges())
            wait_until(lambda: len(web.exchanges()) > before + 40, "both fetch")
            may_repeat.update(first.taken())
            first.kill()
            may_repeat.update(first.taken())
            assert second.wait(300) == 0
            assert "continues from the store" in second.log.read_text()
        assert_complete(without_untold_gaps(web.report(delay_ms=DELAY_MS), DELAY_MS), may_repeat)


def test_of_two_nodes_whose_stores_have_one_url_and_are_two_one_is_refused(tmp_path: Path) -> None:
    """Each has a directory of that name, as on machines that mount nothing there. They start at once; one crawls.

    What the other one says depends on whether it has looked before the first one began.
    """
    with (
        no_strays_below(tmp_path),
        SimulatedWeb(tmp_path / "web", hosts=6, pages=10) as web,
        PrivateRedis() as server,
    ):
        settings = {
            "BIGCRAWL_REDIS_URL": server.url,
            "BIGCRAWL_STORE_URL": "file:///proc/self/cwd/store",
            "BIGCRAWL_HOST_DELAY": 0.2,
            "BIGCRAWL_PARTITIONS": 8,
        }
        nodes = [Crawl(tmp_path / name, web.seeds, dict(settings), cwd=tmp_path / name) for name in ("a", "b")]
        with nodes[0], nodes[1]:
            for node in nodes:
                node.start()
            statuses = [node.wait(300) for node in nodes]
        assert sorted(statuses) == [0, 1]
        refused = nodes[statuses.index(1)]
        said = (
            "was begun in a store other than the one at",
            "does not have crawl 'test', which was begun with the",
        )
        assert any(words in refused.log.read_text() for words in said)
        assert not [path for path in (refused.directory / "store").rglob("*") if path.is_file()]
        assert not list((refused.directory / "warc").rglob("*.warc.gz*"))
        assert_complete(web.report(delay_ms=200))
