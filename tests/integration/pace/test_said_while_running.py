"""What is said to a running crawl of two nodes, another speed or a blacklisted site, holds by the server's log."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.url.canonical import host_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.crawling.verdicts import assert_complete
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long("a crawl of two nodes; tests/contract/test_scripts_speed.py grants their starts")


def largest_left(web: SimulatedWeb) -> str:
    """The site with most pages yet to fetch, of those that ask for no delay: what is stopped must not just be slow."""
    left = Counter(map(host_of, web.expected()))
    left.subtract(exchange.host for exchange in web.exchanges())
    for slow in web.web.crawl_delays_ms():
        del left[slow]
    [(site, pages)] = left.most_common(1)
    assert pages > 20
    return site


def fetched(web: SimulatedWeb, host: str = "") -> int:
    return sum(not host or each.host == host for each in web.exchanges())


def test_two_nodes_hear_another_speed_and_stop_a_site(tmp_path: Path) -> None:
    """A site that is blacklisted gets nothing once both have heard of it, and is not lost.

    That two nodes keep to one speed is held by tests/contract/test_scripts_speed.py and make bench-speed.
    """
    # So slowly that pages are left when all has been said, however long that takes.
    settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 16, "BIGCRAWL_SPEED": "2/s"}
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=8, pages=50) as web:
        with Crawl(tmp_path / "crawl", web.seeds, settings) as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: fetched(web) > 10, "the crawl is under way")
            (second.directory / "seeds.txt").unlink()  # the first has read it
            second.start()
            wait_until(lambda: shares(first) == [8, 8], "each node owns half")
            assert "this node has no seeds" in second.log.read_text()
            first.frontier("speed", "1/s")
            for node in (first, second):
                wait_until(lambda node=node: "speed: 1 pages/s" in node.log.read_text(), "it has heard")  # type: ignore[misc]
            site = largest_left(web)
            first.frontier("blacklist", "add", site)
            for node in (first, second):
                wait_until(lambda node=node: "blacklist: 1 entries" in node.log.read_text(), "it has heard")  # type: ignore[misc]
            stopped = fetched(web, site)
            first.frontier("speed", "unlimited")
            assert first.wait(300) == 0
            assert second.wait(300) == 0
            assert fetched(web, site) <= stopped + 1, "one fetch was under way"
            first.frontier("blacklist", "remove", site)
            first.start()
            assert first.wait(300) == 0
            assert fetched(web, site) > stopped + 1
        assert_complete(web.report())
