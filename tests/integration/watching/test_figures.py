"""What spiders count, of live crawls: the harvest of a focused crawl, and the size of a web that is sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0.1, "BIGCRAWL_CLOSE": "forever"}


@pytest.mark.long("the formulas: tests/annexes/sampling; what is shown: tests/system")
def test_sample_under_way_says_what_it_estimates(tmp_path: Path) -> None:
    """Two nodes walk; each knows its own steps, and both together the web."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=12, pages=40) as web:
        walks = Crawl(tmp_path / "crawl", web.seeds, SETTINGS, arguments={"walks": "60"}, spider="sample")
        with walks as crawl, second_process_of(crawl) as second:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 3, "the first node walks")
            second.start()
            wait_until(lambda: len(crawl.asked("status")["nodes"]) == 2, "both nodes run")
            wait_until(lambda: crawl.asked("estimate")["urls"] is not None, "there are walks enough", 600)
            wait_until(lambda: crawl.asked("estimate")["fetches"] > 70, "the walks go on", 600)
            found = crawl.asked("estimate")
            urls = len(web.expected())
            assert 0.3 * urls < found["urls"][0] <= found["urls"][1] < 3 * urls
            assert found["pages"][0] <= found["urls"][0]
            steps = crawl.asked("status")["figures"]["steps of random walks"][0]
            assert steps >= found["fetches"]
            assert "URLs that links lead to: " in crawl.frontier("estimate").stdout


@pytest.mark.long("the score: tests/unit/spiders/test_focused.py")
def test_focused_crawl_says_its_harvest(tmp_path: Path) -> None:
    """The pages about the topic, of those that were scored."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=4, pages=30) as web:
        focused = Crawl(tmp_path / "crawl", web.seeds, SETTINGS, arguments={"topic": "page"}, spider="focused")
        with focused as crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 10, "pages are fetched")
            wait_until(lambda: crawl.asked("status")["figures"].get("pages about the topic", [0, 0])[1] > 10, "scored")
            found = crawl.asked("status")
            part, whole = found["figures"]["pages about the topic"]
            assert 0 <= part <= whole <= found["pages"] + 20
            assert "counts      pages about the topic: " in crawl.frontier("status").stdout
