"""`scrapy frontier history`: rates over times in which samples lie close, far apart, or are missing."""

from __future__ import annotations

import itertools

import pytest

from bigcrawl.commands.looking.activity import history_text
from bigcrawl.scheduler.crawl.history import TIME_S
from bigcrawl.views.history import LEVELS, RATES, last_of, rates_of

Columns = dict[str, list[float | None]]


def columns_of(times: list[float], pages: list[float | None], nodes: list[float | None] | None = None) -> Columns:
    """The columns that the command reads; bytes are a million times the pages."""
    columns: Columns = {name: [0.0] * len(times) for name in (*RATES, *LEVELS)}
    columns["bytes"] = [None if page is None else 1e6 * page for page in pages]
    return {**columns, TIME_S: [*times], "pages": pages, "nodes": nodes or [1.0] * len(times)}


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
def test_rows_cover_the_whole_time_without_gaps(rows: int) -> None:
    """Each begins where the one before ends, and the growth of all is that of the crawl."""
    times = [0.0, 10, 20, 30, 100, 110, 400]
    columns = columns_of(times, [0, 5, 10, 40, 50, 51, 60])
    found = rates_of(columns, rows)
    assert 1 <= len(found) <= rows
    assert (found[0]["from_s"], found[-1]["to_s"]) == (0, 400)
    assert all(earlier["to_s"] == later["from_s"] for earlier, later in itertools.pairwise(found))
    grown = sum(row["rates"]["pages"] * (row["to_s"] - row["from_s"]) for row in found)
    assert grown == pytest.approx(60)
    assert found[-1]["levels"]["pages"] == 60


def test_rates_are_a_second_and_levels_those_at_the_end() -> None:
    [row] = rates_of(columns_of([100, 120], [10, 50]), 5)
    assert row["rates"] == {"pages": 2.0, "items": 0, "errors": 0, "dropped": 0, "new": 0, "bytes": 2e6}
    assert row["levels"]["pages"] == 50


@pytest.mark.parametrize("times", [[], [7.0]])
def test_no_rates_without_two_samples(times: list[float]) -> None:
    assert rates_of(columns_of(times, [3.0] * len(times)), 5) == []
    assert history_text([]).startswith("there is no history yet")


def test_value_that_was_not_sampled_is_left_empty() -> None:
    """An older version of bigcrawl did not know the column."""
    [first, second] = rates_of(columns_of([0, 10, 20], [None, 1, 3]), 2)
    assert (first["rates"]["pages"], second["rates"]["pages"]) == (None, 0.2)
    line = history_text([first]).splitlines()[1]
    assert line.split()[:4] == ["1970-01-01", "00:00:10Z", "0.0", "0.0"]


def test_time_in_which_no_node_ran_is_named() -> None:
    """The last sample of a crawl that was stopped has no node; the next is that of its next start."""
    rows = rates_of(columns_of([0, 10, 5_000, 5_010], [0, 8, 8, 9], [1, 0, 1, 1]), 1_000)
    assert [row["is_stopped"] for row in rows] == [False, True, False]
    assert [("no node ran" in line) for line in history_text(rows).splitlines()[1:]] == [False, True, False]


def test_table_is_aligned() -> None:
    rows = rates_of(columns_of([0, 10, 20], [0, 5, 1_000_000]), 2)
    lines = history_text(rows).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "99,999.5" in lines[2]
    assert lines[2].split()[-4:] == ["1,000,000", "0", "0", "1"]


def test_last_hours_are_those_before_the_newest_sample() -> None:
    columns = columns_of([0, 1_000, 4_000, 5_000], [0, 1, 2, 3])
    assert last_of(columns, 1_000)[TIME_S] == [4_000, 5_000]
    assert last_of(columns, 3_600)["pages"] == [2, 3]
    assert last_of(columns, 1e9) == columns
    assert last_of(columns_of([], []), 5) == columns_of([], [])
