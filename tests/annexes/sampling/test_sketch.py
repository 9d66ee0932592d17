"""What nodes know of a sample so far, put together."""

from __future__ import annotations

import json
from random import Random
from statistics import fmean

import pytest

from bigcrawl_sampling.command import estimate_text
from bigcrawl_sampling.estimating import WALKS_MIN
from bigcrawl_sampling.sketch import KEPT_MAX, WalkSketch
from bigcrawl_sampling.steps import WalkStep
from tests.annexes.sampling.test_estimating import DEAD, PAGES, WALKS, links_of_web, walks_over


def sketch_of(steps: list[WalkStep]) -> WalkSketch:
    made = WalkSketch()
    for step in steps:
        made.add(step)
    return made


def test_bounds_are_about_the_truth() -> None:
    """A quarter of the URLs is kept; the middle is off by a sixth at most on average, that of pages too."""
    links = links_of_web(Random(7))
    found = [sketch_of(walks_over(links, WALKS, Random(seed))).estimate() for seed in range(20)]
    for truth, bounds in ((PAGES + DEAD, [one["urls"] for one in found]), (PAGES, [one["pages"] for one in found])):
        assert fmean(map(fmean, bounds)) == pytest.approx(truth, rel=0.17)
        assert all(truth / 2 < low <= high < 2 * truth for low, high in bounds)
    assert all(one["walks"] == WALKS for one in found)


def test_nodes_together_say_what_one_would_have_said() -> None:
    """Whichever node made a step, and in whatever order their sketches come; as JSON, and bounded."""
    steps = walks_over(links_of_web(Random(7)), WALKS, Random(3))
    parts = [sketch_of(steps[number::3]).to_json() for number in range(3)]
    together = WalkSketch()
    for part in parts[::-1]:
        assert len(part["urls"]) <= KEPT_MAX
        assert len(json.dumps(part)) < 60_000
        together.merge(json.loads(json.dumps(part)))
    assert together.estimate() == sketch_of(steps).estimate()


def test_step_that_was_led_away_can_be_sent() -> None:
    """The URL that answers is not the one that was chosen."""
    sketch = sketch_of([WalkStep(walk=1, step=1, asked=7, found=8, is_page=False)])
    assert [row[2:4] for row in json.loads(json.dumps(sketch.to_json()))["urls"]] == [[1, 0], [0, 0]]


def test_few_walks_say_so() -> None:
    steps = walks_over(links_of_web(Random(7)), WALKS_MIN - 1, Random(3))
    found = sketch_of(steps).estimate()
    assert (found["urls"], found["pages"]) == (None, None)
    assert f"at least {WALKS_MIN}" in estimate_text(found)
    assert "no node has told" in estimate_text(WalkSketch().estimate())
    found = sketch_of(walks_over(links_of_web(Random(7)), WALKS, Random(3))).estimate()
    assert f"{found['urls'][0]:,} to {found['urls'][1]:,}" in estimate_text(found)


@pytest.mark.parametrize("damaged", [[], {}, {"walks": 1, "fetches": 1, "below": 5, "urls": [[1]]}, "walks"])
def test_damaged_sketch_is_refused(damaged: object) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        WalkSketch().merge(damaged)  # type: ignore[arg-type]
