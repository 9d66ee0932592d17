"""The bombs that are known are cheap, each as large as it may become, through the code that meets it in a crawl."""

from __future__ import annotations

import pytest

from tests.support.costs.corpus import WORDS, bombs_of
from tests.support.costs.measure import Measure
from tests.support.costs.search import check

MANY = ("page", "page_of_one_url", "sitemap")


@pytest.mark.timeout(600)  # CPU is what is measured: a busy machine may take its time
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(one, marks=pytest.mark.long("many bombs; other kinds have few")) if one in MANY else one
        for one in WORDS
    ],
)
def test_known_bombs_are_cheap(target: str) -> None:
    """None costs more than half a second of CPU, with a margin for a busy machine, or 200 MiB."""
    with Measure(target) as measure:
        found = [check(measure, genome) for genome in bombs_of(target)]
    assert [str(one) for one in found if one is not None] == []
