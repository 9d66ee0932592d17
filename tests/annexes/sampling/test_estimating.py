"""Sizes from walks over webs that are known."""

from __future__ import annotations

from collections import Counter
from random import Random
from statistics import fmean

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_sampling.estimating import WALKS_MIN, WalkArrays, sample_pages
from bigcrawl_sampling.steps import WalkStep

PAGES, DEAD = 1_500, 500
RESTART = 0.2
WALKS = 160


def links_of_web(dice: Random) -> list[tuple[int, ...]]:
    """A web in which some pages are linked to ten times as often as others; the last URLs are no pages."""
    urls = range(PAGES + DEAD)
    loved = [1 + 9 * (url % 10 == 0) for url in urls]
    return [tuple(dict.fromkeys(dice.choices(urls, loved, k=20))) for _ in range(PAGES)]


def walks_over(links: list[tuple[int, ...]], count: int, dice: Random) -> list[WalkStep]:
    steps = []
    for walk in range(count):
        at, number = dice.randrange(20), 0
        while True:
            of_page = links[at] if at < PAGES else ()
            steps.append(WalkStep(walk, number, at, at, at < PAGES, of_page))
            if not of_page or dice.random() < RESTART:
                break
            at, number = dice.choice(of_page), number + 1
    return steps


def test_intervals_cover_the_truth() -> None:
    """Of URLs and of pages; nine of ten at least, and they are narrow enough to say something."""
    links = links_of_web(Random(7))
    found = [WalkArrays(walks_over(links, WALKS, Random(seed))).estimate() for seed in range(20)]
    for truth, intervals in ((PAGES + DEAD, [one.urls for one in found]), (PAGES, [one.pages for one in found])):
        assert sum(one.low <= truth <= one.high for one in intervals) >= 18
        assert fmean(one.value for one in intervals) == pytest.approx(truth, rel=0.15)
        assert fmean(one.high - one.low for one in intervals) < truth
        assert all(one.low <= one.value <= one.high for one in intervals)
    assert all(one.seen < PAGES + DEAD and one.walks == WALKS for one in found)


def test_sample_is_near_uniform_though_the_walk_is_not() -> None:
    """Pages that are linked to ten times as often are a tenth of the sample, as they are a tenth of the web."""
    links = links_of_web(Random(7))
    drawn: Counter[bool] = Counter()
    walked: Counter[bool] = Counter()
    for seed in range(30):
        steps = walks_over(links, WALKS, Random(seed))
        sample = sample_pages(WalkArrays(steps), 20, Random(seed))
        assert len({step.asked for step in sample}) == len(sample) == 20
        assert all(step.is_page for step in sample)
        drawn.update(step.asked % 10 == 0 for step in sample)
        walked.update(step.asked % 10 == 0 for step in steps if step.step and step.is_page)
    assert walked[True] / walked.total() > 0.4
    assert drawn[True] / drawn.total() < 0.2


def test_what_says_nothing_is_told() -> None:
    """Few walks, or walks that go nowhere; walks that never meet give no upper bound that means something."""
    with pytest.raises(ConfigError, match=f"at least {WALKS_MIN}"):
        WalkArrays([WalkStep(0, 0, 1, 1, True, (2,))])
    with pytest.raises(ConfigError, match="beyond its seed"):
        WalkArrays([WalkStep(walk, 0, walk, walk, True) for walk in range(WALKS_MIN)])
    apart = [
        WalkStep(walk, step, 3 * walk + step, 3 * walk + step, True, (3 * walk + 1,))
        for walk in range(50)
        for step in (0, 1)
    ]
    found = WalkArrays(apart).estimate()
    assert found.seen == 100
    assert found.urls.high > 1_000


def test_web_of_dead_links_has_no_pages() -> None:
    """The share of pages is that of what was asked for, and may be none."""
    steps = [WalkStep(walk, step, step, step, False, (1, 2)) for walk in range(WALKS_MIN) for step in (0, 1)]
    assert WalkArrays(steps).estimate().pages.value == 0
