"""The benchmark's arithmetic: what is measured between two looks, and how runs are summed up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.crawl.figures import Look, Spread, measured, spread
from benchmarks.crawl.origin import Counts

FIRST = Look(
    at_s=100.0,
    counts=Counts(200, 50, 1),
    crawler_s=5.0,
    redis_s=1.0,
    origin_s=2.0,
    harness_s=0.5,
    crawler_core_s=1000.0,
    origin_core_s=2000.0,
)
# Ten seconds in which the crawler had its core to itself, and the other core was half idle.
LAST = Look(
    at_s=110.0,
    counts=Counts(4_200, 150, 1),
    crawler_s=14.8,
    redis_s=2.0,
    origin_s=5.0,
    harness_s=0.7,
    crawler_core_s=1009.9,
    origin_core_s=2004.3,
)


def test_what_happened_before_the_first_look_counts_for_nothing() -> None:
    found = measured("stock", FIRST, LAST, rss_bytes=7)
    assert (found.pages, found.robots, found.others, found.seconds) == (4_000, 100, 0, 10.0)
    assert found.pages_per_s == 400.0
    assert found.crawler_ms == pytest.approx(2.45)
    assert found.redis_ms == pytest.approx(0.25)
    assert found.origin_ms == pytest.approx(0.75)
    assert found.cpu_ms == pytest.approx(2.7)
    assert found.crawler_share == pytest.approx(0.98)
    assert found.rss_bytes == 7
    assert found.trouble == ()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"crawler_core_s": 1010.4}, "others used 6% of the crawler's core"),
        ({"origin_core_s": 2004.9}, "others used 7% of the origin's core"),
        ({"origin_s": 10.1, "origin_core_s": 2009.3}, "the origin's core was 93% busy"),
        ({"crawler_s": 13.9, "crawler_core_s": 1008.9}, "the crawler used only 89% of its core"),
    ],
)
def test_a_disturbed_run_says_by_what(changed: dict[str, float], word: str) -> None:
    assert measured("stock", FIRST, replace(LAST, **changed), 0).trouble == (word,)  # type: ignore[arg-type]


def test_a_run_without_pages_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="fetched 0 pages"):
        measured("stock", FIRST, replace(LAST, counts=FIRST.counts), 0)


def test_disturbed_runs_count_only_where_there_are_no_others() -> None:
    quiet = [replace(measured("stock", FIRST, LAST, 0), pages_per_s=speed) for speed in (90.0, 100.0, 130.0)]
    disturbed = replace(quiet[0], pages_per_s=10.0, trouble=("others",))
    assert spread([*quiet, disturbed], lambda run: run.pages_per_s) == Spread(100.0, 90.0, 130.0)
    assert spread([disturbed], lambda run: run.pages_per_s) == Spread(10.0, 10.0, 10.0)
