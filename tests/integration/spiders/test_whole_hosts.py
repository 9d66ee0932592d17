"""Hosts fetched whole, one at a time: the simulated web's log is in the order that its links say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.url.canonical import host_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "BIGCRAWL_BUDGET_POLICY": "none",
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 1,
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",  # whose delays would only take time
    "BIGCRAWL_WHOLE_HOSTS": 1,
    "CONCURRENT_REQUESTS": 1,
}


class Replay:
    """Which URLs are known after the requests so far: entries in their order, and links within hosts by depth.

    Targets of redirects have a depth, and no place in the order.
    """

    def __init__(self, web: SimulatedWeb, seed: str, depth_max: int) -> None:
        self._web = web
        self._depth_max = depth_max
        self.depths = {seed: 0}
        self.entries = [seed]
        self.inside: list[str] = []

    def ask(self, url: str, status: int) -> None:
        """Check the order of one request, and learn the links of its answer."""
        if url in self.entries:
            assert not self.inside, f"{url} begins a host before {self.inside} of another are fetched"
            assert url == self.entries.pop(0), "entries come in the order in which they were found"
        elif url in self.inside:
            assert self.depths[url] == min(self.depths[one] for one in self.inside), (
                f"breadth-first: {[(self.depths[one], one) for one in self.inside]}"
            )
            self.inside.remove(url)
        if status == 200:
            self._learn(url)
        elif status in (301, 302, 303, 307, 308):
            for target in self._web.web.leads_to(url, self._web.saved.port):
                self.depths.setdefault(target, self.depths[url] if host_of(target) == host_of(url) else 0)

    def _learn(self, page: str) -> None:
        for url in self._web.web.leads_to(page, self._web.saved.port):
            if url in self.depths:
                continue
            is_inside = host_of(url) == host_of(page) and self.depths[page] < self._depth_max
            self.depths[url] = self.depths[page] + 1 if is_inside else 0
            (self.inside if is_inside else self.entries).append(url)


@pytest.mark.parametrize("depth", [2, 0])
def test_hosts_are_fetched_whole_from_where_a_link_enters_them(tmp_path: Path, depth: int) -> None:
    """To their depth, whose other pages come behind; with a depth of 0, breadth-first over all hosts."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=6, pages=6) as web:
        seeds = web.seeds[:1]
        settings = {**SETTINGS, "BIGCRAWL_WHOLE_HOST_DEPTH": depth}
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run(600) == 0
        replay, asked = Replay(web, seeds[0], depth), set()
        for exchange in web.exchanges():
            url = f"http://{exchange.host}:{web.saved.port}{exchange.target}"
            if not exchange.is_robots and url not in asked:
                asked.add(url)
                replay.ask(url, exchange.status)
        assert asked == web.web.reachable(web.saved.port, seeds, obey_robots=False).keys()
        assert replay.entries + replay.inside == []
