"""`scrapy frontier discovery off` and `on`, on a live crawl of the simulated web."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.explained import explained
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def fetched(web: SimulatedWeb) -> set[str]:
    return {f"http://{each.host}:{web.saved.port}{each.target}" for each in web.exchanges()}


def stat(crawl: Crawl, name: str) -> int:
    """A figure of the last run, from the stats at the end of its log."""
    found = re.search(rf"'{re.escape(name)}': (\d+)", crawl.log.read_text())
    return int(found[1]) if found else 0


@pytest.mark.long("a crawl to its end by hand: tests/unit/scheduler/adapter/test_spider_intake.py")
def test_crawl_without_discovery_drains_and_ends(tmp_path: Path) -> None:
    """What waited is fetched, by hand added URLs and their redirects too; links are counted and explained, not queued.

    Switched on again, links are queued from then on.
    """
    settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0.2}
    with (
        SimulatedWeb(tmp_path / "web", hosts=6, pages=30) as web,
        Crawl(tmp_path / "crawl", web.seeds, settings) as crawl,
    ):
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 20, "pages are fetched")
        web.pause()  # at once, so that links are left to be found
        assert crawl.asked("discovery") == {"is_on": True, "off_from": None, "off_until": None}
        crawl.frontier("pause")
        said = crawl.asked("discovery", "off")
        assert not said["is_on"]
        assert crawl.asked("discovery", "off") == said, "the first order counts"
        wait_until(lambda: "discovery is off" in crawl.log.read_text(), "the node has heard it")
        web.resume()
        assert "\ndiscovery   off since" in crawl.frontier("status").stdout
        seen = crawl.status()["urls"]["seen"]
        [url] = sorted(set(web.expected()) - fetched(web))[-1:]
        crawl.frontier("add", url)
        crawl.frontier("resume")
        assert crawl.wait(300) == 0
        assert url in fetched(web)
        assert stat(crawl, "bigcrawl/dropped/discovery-off") > 0
        after = crawl.status()
        assert after["finished"]
        assert after["urls"]["seen"] < len(web.expected()), "the web has more than was found"
        assert after["urls"]["seen"] - seen <= 40, "what was in the outbox, and redirects, and one by hand"
        missing = next(url for url, said in explained(crawl, web.expected()).items() if said["where"] == "nowhere")
        assert "discovery is off since" in crawl.frontier("explain", missing).stdout

        assert crawl.asked("discovery", "on")["is_on"]
        assert "were not queued" in crawl.frontier("explain", missing).stdout
        crawl.frontier("retry", *sorted(fetched(web) & set(web.expected())))
        crawl.start()
        assert crawl.wait(300) == 0
        assert stat(crawl, "bigcrawl/dropped/discovery-off") == 0
        assert crawl.status()["urls"]["seen"] > after["urls"]["seen"]
        wrong = crawl.frontier("discovery", "maybe", check=False)
        assert (wrong.returncode, wrong.stderr) == (1, "bigcrawl: discovery must be on or off, but is 'maybe'\n")
