"""Faults of every kind at random, in crawls of three nodes whose answer is known: a thousand of them.

    BIGCRAWL_TEST_FAULTS=40 make test-fault TESTS=tests/fault/test_random_faults.py     # two minutes
    BIGCRAWL_TEST_FAULT_KINDS=kill,lost BIGCRAWL_TEST_SEED=7 ...                        # these kinds, these moments

What happens when follows from the seed, the machine's own timing apart. A crawl that fails prints its story.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.faults.kinds import KINDS
from tests.support.faults.suffering import Suffering
from tests.support.faults.verdict import wrong
from tests.support.faults.world import World
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(4 * 3600)]

FAULTS = int(os.environ.get("BIGCRAWL_TEST_FAULTS", "1000"))
FAULTS_OF_OWN_DISKS = int(os.environ.get("BIGCRAWL_TEST_FAULTS", "200"))
HOSTS = PAGES = 40  # pages of each host
SECONDS_MAX = float(os.environ.get("BIGCRAWL_TEST_FAULT_SECONDS", "7200"))
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1"))
NAMES = sorted(os.environ.get("BIGCRAWL_TEST_FAULT_KINDS", ",".join(KINDS)).split(","))
GAP_S = 1.5


@pytest.mark.parametrize(
    ("own_disks", "faults"),
    [
        pytest.param(False, FAULTS, id="one-disk"),
        # Nodes join, and machines are lost with their disks; the clock of one is half a minute wrong.
        pytest.param(True, FAULTS_OF_OWN_DISKS, id="own-disks-and-a-store"),
    ],
)
def test_random_faults_lose_nothing_and_break_no_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_disks: bool, faults: int
) -> None:
    """Coverage 1, polite throughout, repeats within their bounds, each page stored; no node ends by itself."""
    met: Counter[str] = Counter()
    began_s, number = time.monotonic(), 0
    while met.total() < faults and time.monotonic() - began_s < SECONDS_MAX:
        seed = SEED + number
        directory = tmp_path / f"seed{seed}"
        with (
            no_strays_below(directory),
            SimulatedWeb(directory / "web", hosts=HOSTS, pages=PAGES, seed=seed) as web,
            World(directory, web, seed, own_disks=own_disks) as world,
        ):
            suffering = Suffering(world, random.Random(seed), faults - met.total(), GAP_S)
            suffering.meet_any(NAMES)
            here = suffering.end()
            problems = world.problems + wrong(world)
        met += here
        with capsys.disabled():
            print(f"\nseed {seed}: {here.total()} faults, {met.total()} in all: {dict(here)}", end="")  # noqa: T201
        assert not problems, "\n".join([f"seed {seed}", *problems, *world.said])
        number += 1
    assert met.total() >= faults, f"only {met.total()} faults within {SECONDS_MAX:g} s"
