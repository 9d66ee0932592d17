"""Two nodes without a shared disk: what one has, the other gets from the store, even after kill -9."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawls import Crawl, SimulatedWeb, shares
from tests.support.processes import no_strays_below, wait_until
from tests.support.redis_server import PrivateRedis
from tests.support.verdicts import assert_complete

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]


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
            "BIGCRAWL_HOST_DELAY": 0.3,
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
        assert_complete(web.report(delay_ms=300), may_repeat)
