"""The number of front queues is the operator's, also between two starts of a crawl."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "BIGCRAWL_BUDGET_POLICY": "none",
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 1,
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
    "BIGCRAWL_WHOLE_HOSTS": 1,  # so that entries wait on disk
    "CONCURRENT_REQUESTS": 1,
}


def test_nothing_is_lost_when_it_changes(tmp_path: Path) -> None:
    """Each page of the web is fetched, and none twice."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=6, pages=6) as web:
        seeds = web.seeds[:1]
        with Crawl(tmp_path / "crawl", seeds, {**SETTINGS, "BIGCRAWL_FRONT_QUEUES": 5}) as crawl:
            for number, pages in ((5, 15), (64, 30), (4, 0)):
                crawl.settings |= {"BIGCRAWL_FRONT_QUEUES": number, "BIGCRAWL_MAX_PAGES": pages}
                assert crawl.run(600) == 0
        asked = Counter(
            f"http://{one.host}:{web.saved.port}{one.target}"
            for one in web.exchanges()
            if not one.is_robots and not one.is_failure
        )
        expected = {
            url for url, status in web.web.reachable(web.saved.port, seeds, obey_robots=False).items() if status < 500
        }
        assert asked.keys() == expected
        assert set(asked.values()) == {1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"BIGCRAWL_FRONT_QUEUES": 65}, "BIGCRAWL_FRONT_QUEUES is '65'; must be a whole number from 1 to 64 queues"),
        ({"BIGCRAWL_FRONT_QUEUES": 3}, "BIGCRAWL_FRONT_QUEUES is 3; must be at least 4 with BIGCRAWL_WHOLE_HOSTS"),
        ({"BIGCRAWL_PRIORITY_BIAS": "0.5"}, "BIGCRAWL_PRIORITY_BIAS is '0.5'; must be a number from 1 to 1000 times"),
    ],
)
def test_wrong_number_ends_the_start(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    with Crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"], SETTINGS | settings) as crawl:
        assert crawl.run(300) == 1
        log = crawl.log.read_text()
        assert message in log
        assert "Traceback" not in log
