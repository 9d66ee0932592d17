"""Copies over four nodes that are killed at random: all exact ones are known in the end, and nearly all near ones."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.crawling.verdicts import pause
from tests.support.known_copies import bodies_of, check_exact, groups_of, listed_by, near_found
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1_800)]

NODES = 4
KILLS = int(os.environ.get("BIGCRAWL_TEST_KILLS", "16"))
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1"))
SETTINGS = {"BIGCRAWL_HOST_DELAY": 0.5, "BIGCRAWL_PARTITIONS": 32, "BIGCRAWL_CONTENT_SEEN": "near"}


def test_copies_are_known_whatever_node_dies(tmp_path: Path) -> None:
    """kill -9 at random; a fifth of the pages are exact copies, a tenth near ones. Recall 1; at least 0.95 and 0.99."""
    moments = random.Random(SEED)
    with ExitStack() as stack:
        stack.enter_context(no_strays_below(tmp_path))
        web = stack.enter_context(SimulatedWeb(tmp_path / "web", hosts=60, pages=12, features="copies"))
        bodies = bodies_of(web)
        first = stack.enter_context(Crawl(tmp_path / "crawl", web.seeds, dict(SETTINGS)))
        nodes = [first, *(stack.enter_context(second_process_of(first, f"node{n}")) for n in range(1, NODES))]
        for node in nodes:
            node.start()
        wait_until(lambda: len(web.exchanges()) > len(bodies) // 8, "the crawl is under way", timeout_s=600)
        kills = 0
        for _ in range(KILLS):
            pause(moments.uniform(0.2, 2.0))
            node = moments.choice(nodes)
            assert node.process is not None
            if node.process.poll() is None:
                node.kill()
                kills += 1
            pause(moments.uniform(0.0, 1.0))
            node.start()
        for node in nodes:
            assert node.wait(900) == 0
        listed = listed_by(first, bodies)
        counted = first.status()["copies"]
    exact, near = check_exact(bodies, listed), near_found(bodies, listed)
    assert kills >= KILLS // 2, "the crawl ended before most kills"
    assert 0.15 <= exact / len(bodies) <= 0.3, f"{exact} exact copies of {len(bodies)} pages"
    assert 0.07 <= near.expected / len(bodies) <= 0.15, f"{near.expected} near copies"
    assert sum(len(group) for group in groups_of(bodies)) > exact
    assert counted == {"exact": exact, "near": near.found}
    assert (near.recall >= 0.95, near.precision >= 0.99) == (True, True), near
