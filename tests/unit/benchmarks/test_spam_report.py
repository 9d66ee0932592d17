"""The tables of the spam benchmark, from runs that are written here."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.spam.discovery import Discovered
from benchmarks.spam.load import Load
from benchmarks.spam.report import account_table, curve_table, homes_table, load_table, spam_table, times_table
from benchmarks.spam.run import Run
from benchmarks.spam.timeline import SHARES, Point, Timeline
from benchmarks.spam.turns import Account


def run(times: tuple[float | None, ...], spam: int = 0) -> Run:
    timeline = Timeline(
        reachable=100,
        reached_s=dict(zip(SHARES, times, strict=True)),
        seconds=40.0,
        legit=90,
        spam=spam,
        fetches_until={share: None if at is None else round(100 * at) for share, at in zip(SHARES, times, strict=True)},
        spam_until=dict.fromkeys(SHARES, spam),
        robots_legit=10,
        robots_spam=spam,
        spam_of={"bada-offers0.biz": spam},
        curve=(Point(10, 40, 0), Point(20, 80, spam), Point(40, 90, spam)),
    )
    loads = tuple(Load(float(at), 30, 10 * at, 5, 10**6 * at) for at in (1, 2, 3, 4, 5))
    accounts = (Account("bada-offers0.biz", 0, 3, 10, 4, 5, spam),) if spam else ()
    return Run(
        timeline, None, Discovered(100, 9 * spam), dict.fromkeys(SHARES, spam // 2), accounts, loads, "all there", 0.0
    )


NEVER = (None, None, None)
RUNS = {"clean": run((10.0, 20.0, 30.0, 40.0)), "bfs": run((15.0, 50.0, None, None), spam=100)}


def test_times_are_told_as_multiples_of_the_baseline() -> None:
    """1.5 and 2.5 times as long; what never came has no ratio."""
    lines = times_table(RUNS)
    assert lines[3].split()[3:9] == ["(BFS)", "15.0", "(1.50)", "50.0", "(2.50)", "-"]
    assert lines[-1].split()[-6:] == ["1,500", "(1.50)", "5,000", "(2.50)", "-", "-"]


def test_pages_of_homes_have_a_table_where_there_are_homes() -> None:
    """Twice as long until half of them; without homes there is no table."""
    assert homes_table(RUNS) == []
    homes = {name: run(times).timeline for name, times in (("clean", (5.0, 9.0, 9.0, 9.0)), ("bfs", (10.0, *NEVER)))}
    lines = homes_table({name: replace(RUNS[name], homes=timeline) for name, timeline in homes.items()})
    assert "home directories" in lines[0]
    assert lines[-1].split()[-5:] == ["1,000", "(2.00)", "-", "-", "-"]


def test_spam_is_a_share_of_all_fetches_robots_txt_included() -> None:
    """100 pages and 100 robots.txt of 300 fetches."""
    *_, last, even = spam_table(RUNS)
    assert "66.7%" in last
    assert "90.0% of 1,000" in last
    assert even.endswith("50 until 50%, 50 until 90%, 50 until 99%, 50 until 100%")


def test_rates_of_memory_are_those_after_the_first_quarter() -> None:
    """From the second look on: 10 URLs left a second, and so many entered, for as many stayed."""
    last = load_table(RUNS)[-1]
    assert last.split()[-6:] == ["30", "30", "10.0", "10.0", "5", "5.0"]


def test_farms_that_got_more_than_their_budgets_are_counted() -> None:
    """Five budgets of ten URLs, and a hundred fetched; a crawl without budgets has no such table."""
    *_, row, verdict = account_table(RUNS)
    assert row.split()[1:] == ["bada-offers0.biz", "3", "10", "4", "5", "50", "100"]
    assert verdict == "bfs: 1 of 1 farms got more than their budgets allowed"
    assert account_table({"clean": RUNS["clean"]}) == []


def test_curves_stand_side_by_side() -> None:
    assert [line.split() for line in curve_table(RUNS)[2:]] == [
        ["10", "40", "0", "40", "0"],
        ["20", "80", "0", "80", "100"],
        ["40", "90", "0", "90", "100"],
    ]
