"""`scrapy frontier status` says why nothing moves, on a live crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long("six states of a crawl one after the other; tests/unit/commands/looking has each reason")


def test_operator_asks_why_nothing_moves(tmp_path: Path) -> None:
    """It runs; its speed is 0; its hosts rest; its node is killed; it is finished."""
    with SimulatedWeb(tmp_path / "web", hosts=4, pages=60) as web:
        settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 3, "BIGCRAWL_LEASE_SECONDS": 5}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:

            def says(text: str) -> None:
                wait_until(lambda: any(text in reason for reason in crawl.status()["standstill"]), text)

            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 2, "pages are fetched")
            wait_until(lambda: crawl.status()["pages_per_s"] > 0, "its rate is known")
            found = crawl.status()
            assert found["standstill"] == [] or found["pages_per_s"] == 0
            crawl.frontier("speed", "0/s")
            says("its speed is 0 for now, set by hand; `scrapy frontier speed --unset` lifts it")
            assert "\nstandstill  its speed is 0 for now" in crawl.frontier("status").stdout
            crawl.frontier("speed", "--unset")
            crawl.frontier("delay", "127.16.0.0", "--delay", "60")
            wait_until(lambda: crawl.status()["pages_per_s"] > 0, "it goes on")
            crawl.kill()
            says("no node runs")
            crawl.frontier("delay", "127.16.0.0", "--unset")
            crawl.settings["BIGCRAWL_HOST_DELAY"] = 0.3  # until here it was not to be over
            assert crawl.run() == 0
            assert crawl.status()["standstill"] == ["the crawl is finished"]
            assert not web.report(delay_ms=300).missing
