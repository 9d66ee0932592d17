"""A search for inputs from outside that cost more than half a second of CPU, or 200 MiB.

COST_SECONDS says for how long all kinds of input together are searched: ten minutes, if it does not.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.support.costs.corpus import bombs_of
from tests.support.costs.measure import Measure
from tests.support.costs.search import check, search
from tests.support.costs.targets import TARGETS

SECONDS = float(os.environ.get("COST_SECONDS", "600"))


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", TARGETS)
def test_known_bombs_are_within_the_bounds(target: str) -> None:
    """Each as large as it may become. tests/integration/hosts/test_bombs.py compares them with usual inputs."""
    with Measure(target) as measure:
        found = [check(measure, genome) for genome in bombs_of(target)]
    assert [str(one) for one in found if one is not None] == []


@pytest.mark.fault
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_costs_more_than_its_bounds(target: str) -> None:
    """However it is made; the seed is told, so that a search can be had again."""
    seed = int(os.environ.get("COST_SEED") or random.randrange(1 << 32))
    with Measure(target) as measure:
        found, runs = search(measure, random.Random(seed), SECONDS / len(TARGETS))
    assert found is None, f"{found} (seed {seed}, after {runs} inputs)"
    assert runs > len(bombs_of(target))
