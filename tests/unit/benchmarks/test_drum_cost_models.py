"""The formulas of IRLbot §4 give the figures that the paper prints, and bigcrawl's own model stays below them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.drum_cost import paper
from benchmarks.drum_cost.beyond import (
    PerUrl,
    our_alpha,
    steps,
)
from benchmarks.drum_cost.models import (
    LINKS_PER_PAGE,
    PAPER,
    disk_pages_per_s,
    drum_alpha,
    drum_batch,
    drum_bound,
    mercator_alpha,
    mercator_batch,
    optimal_buckets,
    optimal_disk,
    polybot_alpha,
)
from benchmarks.drum_cost.replay import replayed, run_bytes, whole_key_bytes
from benchmarks.drum_cost.tables import table_2_values, table_3_values
from bigcrawl.drum.record_merge import runs_to_merge

LAST = LINKS_PER_PAGE * paper.PAGES[-1]
# About what bigcrawl's runs measure.
PER_URL = PerUrl(text=0.63, tuples=0.33, queue=PAPER.unique_share)


@pytest.mark.parametrize(("pages", "printed"), [*zip(paper.PAGES, paper.TABLE_2, strict=True)])
def test_table_2_is_reproduced_to_its_last_digit(pages: int, printed: tuple[str, ...]) -> None:
    values = table_2_values(pages)
    assert [paper.agrees(*pair) for pair in zip(printed, values, strict=True)] == [True] * 3, values


@pytest.mark.parametrize(("pages", "printed"), [*zip(paper.PAGES, paper.TABLE_3, strict=True)])
def test_table_3_is_reproduced_to_its_last_digit(pages: int, printed: tuple[str, ...]) -> None:
    values = table_3_values(pages)
    assert [paper.agrees(*pair) for pair in zip(printed, values, strict=True)] == [True] * 4, values


def test_theorem_3_is_reproduced_to_its_last_digit() -> None:
    *_, mercator, drum = table_3_values(paper.PAGES[-1])
    polybot = polybot_alpha(PAPER, LAST, paper.TABLE_3_MEMORY[-1])
    for name, alpha in (("Mercator-B", mercator), ("PolyBot", polybot), ("DRUM", drum)):
        speed = disk_pages_per_s(PAPER, alpha, paper.DISK_BYTES_PER_S)
        assert paper.agrees(paper.PAGES_PER_S[name], speed), name
    assert paper.agrees(paper.MERCATOR_TO_DRUM, mercator / drum)
    assert paper.agrees(paper.POLYBOT_TO_MERCATOR, polybot / mercator)
    assert paper.agrees(paper.BOUND, drum_bound(PAPER))


def test_where_the_paper_differs_from_its_own_formulas() -> None:
    """Binary kilobytes miss two figures, bq of 5 a third, and equation (6) is not what the text says it gives."""
    binary = replace(PAPER, buffer_bytes=256 * 1024)
    disk = PAPER.unique_share * PAPER.hash_bytes * LAST
    assert not paper.agrees("8.1", drum_alpha(binary, LAST, 4e9, disk))
    assert not paper.agrees("4192", disk_pages_per_s(binary, drum_alpha(binary, LAST, 8e9, disk), 101_250_000))
    tight = replace(PAPER, compressed_bytes=5)
    assert not paper.agrees("7.2", polybot_alpha(tight, LAST, 8e9) / mercator_alpha(tight, LAST, 8e9))
    assert optimal_disk(PAPER, 1e9) / 1e12 == pytest.approx(4.80, abs=0.005)
    assert optimal_disk(PAPER, 2e9) / 1e12 == pytest.approx(19.2, abs=0.05)
    # The text says 1,000 at 1 GB, and 8,000 at 8 GB.
    assert [round(optimal_buckets(PAPER, memory)) for memory in (1e9, 8e9)] == [977, 7812]


@pytest.mark.parametrize(
    ("printed", "value", "agrees"),
    [("69", 68.71, True), ("93", 93.9996, True), ("93", 94.0, False), ("2.26", 2.2672, True), ("2.26", 2.2549, False)],
)
def test_a_printed_figure_may_be_rounded_or_cut(printed: str, value: float, agrees: bool) -> None:
    assert paper.agrees(printed, value) is agrees


def test_the_two_cases_of_theorem_2_meet_at_the_optimal_disk() -> None:
    best = optimal_disk(PAPER, 1e9)
    by_memory, by_disk = drum_alpha(PAPER, LAST, 1e9, best * 1.0001), drum_alpha(PAPER, LAST, 1e9, best * 0.9999)
    assert by_memory == pytest.approx(by_disk, rel=1e-3)
    assert drum_alpha(PAPER, LAST, 1e9, best * 10) == pytest.approx(by_memory)
    # There its quadratic term is R / 4M times below Mercator-B's.
    assert drum_batch(PAPER, 1e9, best) == pytest.approx(mercator_batch(PAPER, 1e9) * optimal_buckets(PAPER, 1e9))


def test_a_replay_without_merging_is_arithmetic() -> None:
    """Two batches that fill a bucket each: the second reads what the first wrote."""
    cost = replayed(20_000, 10_000, buckets=1, unique_share=1.0, fresh_max=100, length=whole_key_bytes)
    assert tuple(cost) == (80_000, 0, 160_000, 0)
    assert cost.total == 240_000


def test_a_replay_keeps_fresh_keys_out_of_runs_until_they_are_many() -> None:
    cost = replayed(30, 10, buckets=1, unique_share=1.0, fresh_max=20, length=whole_key_bytes)
    assert tuple(cost) == (0, 0, 30 * 8, 20 * 8)


def test_a_replay_merges_as_the_bucket_does() -> None:
    """Four runs of a tier become one: as `runs_to_merge` says, so the fourth batch reads the three before twice."""
    assert runs_to_merge([10_000] * 3, 10_000) == 3
    cost = replayed(40_000, 10_000, buckets=1, unique_share=1.0, fresh_max=100, length=whole_key_bytes)
    assert tuple(cost) == ((10_000 + 20_000 + 30_000) * 8, 30_000 * 8, (30_000 + 40_000) * 8, 0)


def test_more_buckets_cost_as_many_times_as_much_for_as_many_times_the_urls() -> None:
    one = replayed(400_000, 100_000, buckets=1, unique_share=0.5, fresh_max=100, length=whole_key_bytes)
    eight = replayed(3_200_000, 800_000, buckets=8, unique_share=0.5, fresh_max=100, length=whole_key_bytes)
    assert eight.total == 8 * one.total


@pytest.mark.parametrize(("keys", "buckets", "bytes_max"), [(10**9 // 256, 1, 6.2), (10**9 // 256, 256, 5.3)])
def test_a_run_of_evenly_spread_keys_is_as_short_as_promised(keys: int, buckets: int, bytes_max: float) -> None:
    assert run_bytes(keys, buckets) <= bytes_max * keys


@pytest.mark.parametrize("pages", paper.PAGES[:2])
def test_bigcrawls_modelled_row_is_below_the_papers_at_the_sizes_that_exist(pages: int) -> None:
    drum = table_2_values(pages)[2]
    assert our_alpha(PER_URL, LINKS_PER_PAGE * pages, paper.TABLE_2_MEMORY, paper.TABLE_2_DISK) < drum


def test_the_differences_begin_at_the_papers_drum_and_end_at_bigcrawls() -> None:
    offered = LINKS_PER_PAGE * paper.PAGES[2]
    found = list(steps(PER_URL, offered, paper.TABLE_2_MEMORY, paper.TABLE_2_DISK).values())
    assert found[0] == table_2_values(paper.PAGES[2])[2]
    assert found[-1] == our_alpha(PER_URL, offered, paper.TABLE_2_MEMORY, paper.TABLE_2_DISK)
    # Runs that are only read, shorter keys, and aux compressed: each is a gain.
    assert found[0] > found[1] > found[2] > found[3]
