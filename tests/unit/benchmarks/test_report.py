"""The tables say what was measured, the right way round."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.crawl.figures import Measurement
from benchmarks.crawl.report import aligned, ratio_lines, side_table, stage_table
from benchmarks.crawl.stages import StageCosts

OURS = Measurement(
    side="bigcrawl",
    seconds=60,
    pages=48_000,
    robots=0,
    others=0,
    pages_per_s=800,
    crawler_ms=1.0,
    redis_ms=0.2,
    origin_ms=0.1,
    crawler_share=1.0,
    origin_share=0.1,
    rss_bytes=150_000_000,
)
THEIRS = replace(OURS, side="stock", pages_per_s=80, crawler_ms=12.0, redis_ms=0.0)


def test_ratios_are_of_speed_to_speed_and_of_cost_with_redis() -> None:
    assert ratio_lines({"bigcrawl": [OURS], "stock": [THEIRS]}) == [
        "bigcrawl to Scrapy: 10.0 times the pages/s, 1/10.0 of the CPU a page"
    ]


def test_without_bigcrawl_there_are_no_ratios() -> None:
    assert ratio_lines({"stock": [THEIRS]}) == []


def test_a_line_has_medians_and_bounds_and_disturbed_rounds_are_told() -> None:
    runs = [replace(OURS, pages_per_s=speed) for speed in (700, 800, 850)]
    disturbed = replace(OURS, pages_per_s=100, trouble=("others used 50% of the crawler's core",))
    table = side_table({"bigcrawl": [*runs, disturbed], "stock": [replace(THEIRS, trouble=("busy",))]})
    assert "800 (700-850)" in table
    assert "1.20 (1.20-1.20)" in table
    assert "! bigcrawl, all on: 1 of 4 rounds were disturbed; the others count" in table
    assert "! Scrapy: 1 of 1 rounds were disturbed; do not quote its pages/s" in table


def test_stages_are_scaled_to_the_run_without_profiler() -> None:
    costs = StageCosts(pages=10, main={"engine": 300.0}, others={"frontier": 100.0}, functions=[])
    lines = stage_table(costs, cpu_ms=0.2).splitlines()
    assert lines[1].split() == ["frontier", "0", "50", "25%"]
    assert lines[2].split() == ["engine", "150", "0", "75%"]
    assert lines[3].split() == ["all", "150", "50"]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert aligned([("a", "1"), ("long", "22")]) == ["a      1", "long  22"]
