"""BIGCRAWL_CLOSE_RATE, on a crawl of two nodes that a few slow hosts hold up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long("waits for the window of a rate: tests/unit/scheduler/node/test_close_rate.py")
def test_slow_crawl_is_closed_on_all_nodes_and_can_go_on(tmp_path: Path) -> None:
    """One decision for all; nothing is lost; a pause does not count, and without the setting the crawl is finished."""
    settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 5, "BIGCRAWL_STOP_GRACE": 60}
    slow = {"BIGCRAWL_CLOSE_RATE": 1000, "BIGCRAWL_CLOSE_RATE_SPAN": 6}
    with (
        SimulatedWeb(tmp_path / "web", hosts=4, pages=12) as web,
        Crawl(tmp_path / "crawl", web.seeds, {**settings, **slow, "BIGCRAWL_NODE": "one"}) as crawl,
    ):
        other = second_process_of(crawl)
        other.settings["BIGCRAWL_NODE"] = "two"
        with other:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 2, "it has begun")
            other.start()
            assert crawl.wait(300) == 0
            assert other.wait(300) == 0
        for each in (crawl, other):
            assert "Spider closed (bigcrawl_low_rate)" in each.log.read_text()
        assert "slower than BIGCRAWL_CLOSE_RATE" in crawl.log.read_text() + other.log.read_text()
        status = crawl.status()
        assert not status["finished"]
        assert status["urls"]["taken"] == 0
        crawl.settings |= {"BIGCRAWL_CLOSE_RATE": 0, "BIGCRAWL_HOST_DELAY": 0.2}
        assert crawl.run() == 0
        assert "Spider closed (finished)" in crawl.log.read_text()
        report = web.report(delay_ms=200)
        assert report.ok, str(report)
