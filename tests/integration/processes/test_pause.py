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

HEARD = "speed: paused"


def wait_for_a_pause(crawl: Crawl) -> None:
    """Wait until each node has said, later than now, that it has nothing under way."""
    since_s = time.monotonic()

    def has_stopped() -> bool:
        asked_s = time.monotonic()
        return all(
            asked_s - row["last_heard_s"] > since_s and not row["stages"].keys() & {"robots", "started"}
            for row in crawl.asked("nodes")["nodes"]
        )

    wait_until(has_stopped, "nothing is under way")


def fetched(web: SimulatedWeb, host: str = "") -> int:
    return sum(not host or each.host == host for each in web.exchanges())


def test_operator_pauses_resumes_and_drains(tmp_path: Path) -> None:
    """The crawl, a host, a node; then one node is ended from afar, and comes back. Nothing is lost by any of it."""
    settings = {"BIGCRAWL_PARTITIONS": 8, "BIGCRAWL_HOST_DELAY": 6, "BIGCRAWL_STOP_GRACE": 60}
    with SimulatedWeb(tmp_path / "web", hosts=8, pages=30) as web:
        with Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_NODE": "one"}) as crawl:
            other = second_process_of(crawl)
            other.settings["BIGCRAWL_NODE"] = "two"
            with other:
                crawl.start()
                wait_until(lambda: fetched(web) > 4, "it has begun")
                other.start()
                wait_until(lambda: len(crawl.status()["nodes"]) == 2, "both run")

                assert crawl.asked("pause")["changed"] == ["crawl test"]
                wait_until(lambda: all(HEARD in node.log.read_text() for node in (crawl, other)), "both have heard it")
                wait_for_a_pause(crawl)
                before = fetched(web)
                assert crawl.asked("pause")["unchanged"] == ["crawl test"]
                assert crawl.status()["standstill"][0] == "it is paused; `scrapy frontier resume` lets it continue"
                assert fetched(web) == before
                crawl.frontier("resume")
                wait_until(lambda: fetched(web) > before, "it goes on")
                assert crawl.frontier("resume", check=False).returncode == 1
                crawl.frontier("speed", "0/s")
                assert "\nstandstill  its speed is 0 for now, set by hand" in crawl.frontier("status").stdout
                crawl.frontier("speed", "--unset")

                host = web.exchanges()[0].host
                [two] = [node for node in crawl.status()["nodes"] if node.startswith("two-")]
                assert crawl.asked("pause", host, "two")["changed"] == [f"node {two}", f"{host}/32"]
                wait_until(lambda: other.log.read_text().count(HEARD) == 2, "the node has heard it")
                wait_until(lambda: "blacklist: 1 entries" in crawl.log.read_text(), "the other one, of the host")
                wait_for_a_pause(crawl)
                before = fetched(web, host)
                assert crawl.asked("speed")["paused"] == [two]
                wait_for_a_pause(crawl)
                assert fetched(web, host) == before
                assert crawl.asked("resume", host, two)["changed"] == [f"node {two}", f"{host}/32"]

                said = crawl.frontier("drain", "three", check=False)
                assert said.returncode == 1
                assert "no node 'three' runs; there are: one-" in said.stderr
                crawl.frontier("drain", "two")
                assert other.wait(300) == 0
                assert "Spider closed (bigcrawl_drained)" in other.log.read_text()
                other.start()  # it is another node, of which nobody has asked anything
                wait_until(lambda: len(crawl.status()["nodes"]) == 2, "it is back")
                assert len(crawl.asked("drain", "--all")["drained"]) == 2
                assert (crawl.wait(300), other.wait(300)) == (0, 0)
                assert crawl.asked("drain", "--all")["drained"] == []
                assert crawl.frontier("drain", check=False).returncode == 1
            crawl.settings["BIGCRAWL_HOST_DELAY"] = 0.4  # until here it was not to be over
            assert crawl.run() == 0
            assert crawl.status()["standstill"] == ["the crawl is finished"]
        report = web.report(delay_ms=400)
        assert report.ok, str(report)
