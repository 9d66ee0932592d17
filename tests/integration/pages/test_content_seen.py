"""Copies are known over all nodes and runs of a crawl, by their contents' partitions."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.known_copies import bodies_of, check_exact, listed_by, near_found
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(1_800)

SETTINGS = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 8, "BIGCRAWL_CONTENT_SEEN": "near"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=10, pages=12, features="copies") as served:
        yield served


@pytest.mark.long("two runs of two nodes; test_copies has a run of one")
def test_copies_on_other_nodes_and_in_earlier_runs_are_known(tmp_path: Path, web: SimulatedWeb) -> None:
    """Though a node is killed and all are stopped once: all but one of equal pages, and nearly so of similar ones."""
    bodies = bodies_of(web)
    with Crawl(tmp_path / "crawl", web.seeds, dict(SETTINGS)) as first, second_process_of(first) as second:
        first.start()
        second.start()
        wait_until(lambda: len(web.exchanges()) > 100, "the crawl is under way", timeout_s=600)
        second.kill()
        wait_until(lambda: len(web.exchanges()) > 200, "it goes on", timeout_s=600)
        first.terminate()
        assert first.wait(300) == 0
        assert first.run(900) == 0
        listed = listed_by(first, bodies)
        counted = first.status()["copies"]
        first.frontier("copies", str(tmp_path / "copies.jsonl"))
        lines = [json.loads(line) for line in (tmp_path / "copies.jsonl").read_text().splitlines()]
    exact, near = check_exact(bodies, listed), near_found(bodies, listed)
    assert counted == {"exact": exact, "near": near.found}
    assert Counter(line["kind"] for line in lines) == Counter(exact=exact, near=near.found)
    assert (exact >= 30, near.expected >= 15) == (True, True), "there are some"
    assert (near.recall >= 0.95, near.precision >= 0.99) == (True, True), near
