"""What watching costs, counted rather than measured."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from benchmarks.metrics.__main__ import watch
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long("the metrics of a crawl: tests/integration/watching/test_metrics.py")
def test_a_scrape_asks_nothing_of_redis_and_has_as_many_series_for_any_crawl(tmp_path: Path) -> None:
    """However many hosts there are, and partitions."""
    found = []
    for hosts, partitions in ((10, 2), (100, 16)):
        with PrivateRedis(aof=False) as redis:
            found.append(asyncio.run(watch(hosts, partitions, tmp_path / str(hosts), redis)))
    assert [each.commands for each in found] == [0, 0]
    assert found[0].series == found[1].series < 300
