"""A crawl with room for one URL in process, or one request at a time, is slow and whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.hosts.test_backoff import paths, serving, well
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "setting",
    [pytest.param("BIGCRAWL_IN_PROCESS_MAX", marks=pytest.mark.long("the other setting")), "CONCURRENT_REQUESTS"],
)
def test_room_for_one_is_enough(tmp_path: Path, setting: str) -> None:
    """All pages of two hosts, in 256 partitions."""
    with no_strays_below(tmp_path), serving("127.0.64.1", well) as one, serving("127.0.64.2", well) as other:
        crawl = Crawl(
            tmp_path / "crawl",
            one.urls(*paths()) + other.urls(*paths()),
            {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 256, setting: 1},
        )
        with crawl:
            assert crawl.run(300) == 0
        for host in (one, other):
            assert sorted(path for _, path, _ in host.pages) == sorted(paths())
