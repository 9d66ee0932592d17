"""The bombs that are known are cheap, through the code that meets them in a crawl."""

from __future__ import annotations

import pytest

from tests.support.costs.corpus import USUAL, WORDS, bombs_of
from tests.support.costs.measure import Measure
from tests.support.costs.search import compare


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(one, marks=pytest.mark.long("many bombs; other kinds have few")) if one == "page" else one
        for one in WORDS
    ],
)
def test_known_bombs_cost_little_more_than_usual_inputs(target: str) -> None:
    """None costs many times as much as a usual input of its size, or 200 MiB.

    What each costs in seconds, as large as it may become, is asked by tests/fault/test_expensive_inputs.py.
    """
    with Measure(target, is_scaled=False) as measure:
        assert [str(one) for one in compare(measure, USUAL[target], bombs_of(target))] == []
