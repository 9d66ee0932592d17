"""`scrapy frontier pause`, `resume` and `drain`, on a live crawl of two nodes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long("waits for what does not happen; test_dashboard pauses a crawl, too")

OBEYED_S = 3.0  # a second, and what is under way


def fetched(web: SimulatedWeb, host: str = "") -> int:
    return sum(not host or each.host == host for each in web.exchanges())


def test_operator_pauses_resumes_and_drains(tmp_path: Path) -> None:
    """The crawl, a host, a node; then one node is ended from afar, and the other ends the crawl."""
    settings = {"BIGCRAWL_PARTITIONS": 8, "BIGCRAWL_HOST_DELAY": 0.4, "BIGCRAWL_LEASE_SECONDS": 5}
    with SimulatedWeb(tmp_path / "web", hosts=8, pages=60) as web:
        with Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_NODE": "one"}) as crawl:
            other = second_process_of(crawl)
            other.settings["BIGCRAWL_NODE"] = "two"
            with other:
                crawl.start()
                wait_until(lambda: fetched(web) > 4, "it has begun")
                other.start()
                wait_until(lambda: len(crawl.status()["nodes"]) == 2, "both run")

                assert crawl.asked("pause")["changed"] == ["crawl test"]
                time.sleep(OBEYED_S)
                before = fetched(web)
                assert crawl.asked("pause")["unchanged"] == ["crawl test"]
                assert crawl.status()["standstill"][0] == "it is paused; `scrapy frontier resume` lets it go on"
                assert fetched(web) == before
                crawl.frontier("resume")
                wait_until(lambda: fetched(web) > before, "it goes on")
                assert crawl.frontier("resume", check=False).returncode == 1

                host = web.exchanges()[0].host
                [two] = [node for node in crawl.status()["nodes"] if node.startswith("two-")]
                assert crawl.asked("pause", host, "two")["changed"] == [f"node {two}", f"{host}/32"]
                time.sleep(OBEYED_S)
                before = fetched(web, host)
                assert crawl.asked("speed")["paused"] == [two]
                assert fetched(web, host) == before
                assert crawl.asked("resume", host, two)["changed"] == [f"node {two}", f"{host}/32"]

                said = crawl.frontier("drain", "three", check=False)
                assert said.returncode == 1
                assert "no node 'three' runs; there are: one-" in said.stderr
                crawl.frontier("drain", "two")
                assert other.wait(60) == 0
                assert "Spider closed (bigcrawl_drained)" in other.log.read_text()
                other.start()  # it is another node, of which nobody has asked anything
                wait_until(lambda: len(crawl.status()["nodes"]) == 2, "it is back")
                assert crawl.wait(300) == 0
                assert other.wait(300) == 0
        report = web.report(delay_ms=400)
        assert report.ok, str(report)
