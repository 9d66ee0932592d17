"""Chaos: a crawl of three machines with disks of their own, a store and visits again, to which anything happens.

    make chaos                                     # 300 faults, in about 45 minutes; takes root
    BIGCRAWL_TEST_FAULTS=12 make chaos             # a crawl of as many
    BIGCRAWL_TEST_SEED=1003 BIGCRAWL_TEST_FAULTS=50 make chaos       # the crawl of that seed alone
    BIGCRAWL_TEST_FAULT_KINDS=outage,kill ...      # these kinds

What happens when follows from the seed, the machine's own timing apart. The store of each other crawl is a mount, that
of the others a server of S3's protocol. A crawl that fails prints its story.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.faults.machines_world import MachinesWorld
from tests.support.faults.suffering import Suffering
from tests.support.faults.verdict import wrong
from tests.support.running.processes import no_strays_below
from tests.support.servers.s3_server import FaultyS3, new_bucket

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.fault,
    pytest.mark.timeout(3 * 3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces take root"),
]

KINDS = "kill,term,stop,gone,outage,full,cramped,pages,unmounted,store-full,store-refuses,store-slow,store-hangs"
FAULTS = int(os.environ.get("BIGCRAWL_TEST_FAULTS", "6"))  # so that a short crawl is part of make test-fault
FAULTS_OF_CRAWL = 50
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1000"))
NAMES = sorted(os.environ.get("BIGCRAWL_TEST_FAULT_KINDS", KINDS).split(","))
HOSTS, PAGES = 30, 30  # pages of each host
GAP_S = 4.0


def test_chaos_loses_no_page_and_no_visit_and_breaks_no_rule(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each page has all its visits, in the server's log, in the crawl's records, in WARC files and both indexes."""
    caplog.set_level("ERROR", "werkzeug")  # a line a request
    met: Counter[str] = Counter()
    seed = SEED
    while met.total() < FAULTS:
        directory = tmp_path / f"seed{seed}"
        with ExitStack() as stack:
            stack.enter_context(no_strays_below(directory))
            web = stack.enter_context(
                SimulatedWeb(directory / "web", hosts=HOSTS, pages=PAGES, seed=seed, features="validators,copies")
            )
            s3 = stack.enter_context(FaultyS3()) if seed % 2 else None
            bucket = new_bucket(s3.url, monkeypatch) if s3 else ""
            world = stack.enter_context(MachinesWorld(directory, web, seed, s3, bucket))
            suffering = Suffering(world, random.Random(seed), min(FAULTS_OF_CRAWL, FAULTS - met.total()), GAP_S)
            suffering.meet_any(NAMES)
            here = suffering.end()
            wrongs = wrong(world)
            problems = world.problems + wrongs
            [again] = [line for line in world.said if "fetched again" in line]
        met += here
        with capsys.disabled():
            print(f"\nseed {seed}: {here.total()} faults, {met.total()} in all: {dict(here)}; {again.split('  ')[-1]}")  # noqa: T201
        assert not problems, "\n".join([f"seed {seed}", *problems, *world.said])
        seed += 1
