"""One crawl of 50,000 pages by three scrapyd nodes that share nothing but Redis and a store, under every kind of fault.

    make test-fault TESTS=tests/fault/test_scrapyd_faults.py        # half an hour
    BIGCRAWL_TEST_SEED=7 ...                                        # other moments
    BIGCRAWL_TEST_FAULT_PAGES=6000 ...                              # a smaller web, to look for a fault in the test

It prints what docs/performance.md quotes.
"""

from __future__ import annotations

import os
import random
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.crawling.scrapyd_node import ScrapydCrawl
from tests.support.faults.kinds import KINDS
from tests.support.faults.suffering import Suffering
from tests.support.faults.verdict import wrong
from tests.support.faults.world import CLOCK_WRONG_S, World
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.faults.world import Node

pytestmark = [pytest.mark.fault, pytest.mark.timeout(2 * 3600)]

HOSTS = 60
PAGES = int(os.environ.get("BIGCRAWL_TEST_FAULT_PAGES", "50400")) // HOSTS  # of each
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1"))
GAP_S = 2.5
FAULTS, FAULTS_MIN = 120, 100
# A node is killed, stopped, added, lost with its disk, cut off; Redis is killed and failed over.
EACH_KIND = ("kill", "stop", "join", "gone", "away", "redis", "failover")


def test_a_crawl_of_scrapyd_nodes_outlives_every_kind_of_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hundred faults in one crawl: coverage 1, polite, repeats within their bounds; and it ends by itself."""
    began_s = time.monotonic()
    with (
        no_strays_below(tmp_path),
        SimulatedWeb(tmp_path / "web", hosts=HOSTS, pages=PAGES, seed=SEED) as web,
        World(tmp_path, web, SEED, own_disks=True, kind=ScrapydCrawl) as world,
    ):
        suffering = Suffering(world, random.Random(SEED), FAULTS, GAP_S)
        suffering.meet_each(EACH_KIND)
        suffering.meet_any(sorted(KINDS))
        met = suffering.end()
        minutes = (time.monotonic() - began_s) / 60
        problems = world.problems + wrong(world)
        pages = len(web.expected())
    story = [f"seed {SEED}: {pages} pages in {minutes:.0f} minutes, {met.total()} faults: {dict(met)}", world.said[-1]]
    with capsys.disabled():
        print("", *story, sep="\n", end="")  # noqa: T201
    assert not problems, "\n".join([*story, *problems, *world.said])
    assert met.total() >= FAULTS_MIN, story
    assert all(met[kind] for kind in EACH_KIND), story
    errors_s = [clock_error_s(node) for node in world.nodes]
    assert CLOCK_WRONG_S - 5 < errors_s[0] < CLOCK_WRONG_S + 5, errors_s
    assert max(map(abs, errors_s[1:])) < 5, errors_s


def clock_error_s(node: Node) -> float:
    """How far ahead of the machine a node's clock is: by what it wrote last into its log, and when that was."""
    [*_, last] = re.findall(
        r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \[", node.crawl.log.read_text(errors="replace"), re.MULTILINE
    )
    return datetime.fromisoformat(last).timestamp() - node.crawl.log.stat().st_mtime
