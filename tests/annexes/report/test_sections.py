"""The tables: what each number is made of, and that nothing is claimed that is not known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.features.tallies.tallies import Tallies
from bigcrawl.scheduler.crawl.history import COLUMNS, TIME_S
from bigcrawl.views.figures import PldFigures
from bigcrawl.views.plds import TopPld
from bigcrawl_report.document import document_of
from bigcrawl_report.irlbot import budgets_used, by_degree, percentile, queues_at
from bigcrawl_report.rates import STEPS_MAX, HistoryRates, step_s_of
from tests.annexes.report.figures import BEGUN_S, figures_of, history_of, status_of
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.views.figures import Columns, CrawlFigures


def rows_of(figures: CrawlFigures, name: str) -> dict[Any, Any]:
    """A table's rows by their first cell; the other one, or the tuple of the others."""
    rows = document_of(figures).to_json()["tables"][name]["rows"]
    return {first: others[0] if len(others) == 1 else tuple(others) for first, *others in rows}


def test_requests_are_pages_errors_repeated_tries_and_robots(tmp_path: Path) -> None:
    rows = rows_of(figures_of(tmp_path), "requests")
    assert rows["HTTP requests"] == (114, 1.0)
    assert rows["pages, of any status"][0] == 100
    assert rows["tries that were repeated"][0] == 2
    assert rows["requests for robots.txt"][0] == 8
    assert rows_of(figures_of(tmp_path), "statuses") == {"200": ("OK", 90, 0.9), "404": ("Not Found", 10, 0.1)}
    assert rows_of(figures_of(tmp_path), "dropped") == {"forbidden": (6, 1.0)}


def test_sizes_types_and_encodings_are_of_answers_with_status_200(tmp_path: Path) -> None:
    tallies = Tallies()
    tallies.record_answer(200, b"text/html", b"gzip", 1_000)
    tallies.record_unpacked(1_000, 5_000)
    tallies.record_answer(200, b"text/html", None, 3_000)
    tallies.record_answer(200, b"application/pdf", None, 0)
    tallies.record_answer(404, b"text/plain", b"br", 77)
    tallies.record_answer(200, b"text/html", b"identity", 2)
    figures = figures_of(tmp_path, tallies)
    assert rows_of(figures, "types") == {
        "text/html": (3, 0.75, 4_002, 1_334),
        "application/pdf": (1, 0.25, 0, 0),
    }
    sizes = rows_of(figures, "sizes")
    assert {name: row[0] for name, row in sizes.items() if row[0]} == {
        "0": 1,
        "2 to 3": 1,
        "512 to 1,023": 1,
        "2,048 to 4,095": 1,
    }
    assert sizes["2,048 to 4,095"][2] == 1.0
    assert rows_of(figures, "encodings") == {"gzip": (1, 0.25, 1_000, 1_000)}
    note = document_of(figures).to_json()["tables"]["sizes"]["note"]
    assert "These have 4,002 bytes; the 1 answers of another status have 77." in note
    assert rows_of(figures, "figures")["compression ratio of those that were unpacked"] == "1:5.00"


def test_queues_follow_from_how_often_budgets_were_used_up(tmp_path: Path) -> None:
    """The paper's own figures: 16 queues at 8 billion pages and 128 at 80 billion, of 33 million PLDs."""
    pages = {8 * 10**9: 16, 80 * 10**9: 128}
    assert {n: queues_at(budgets_used(n, 11, 33 * 10**6)) for n in pages} == pages
    assert queues_at(budgets_used(5, 10, 10)) == 1
    tallies = Tallies()
    for number in range(2):
        tallies.record_page("www.example", f"pld{number}.example", "192.0.2.1", 100)
    rows = rows_of(figures_of(tmp_path, tallies, plds=PldFigures([], [], {}, 3, 0, 10.0, 8)), "queues")
    assert rows["queues by (11)"] == "4", "100 pages of 2 PLDs with a budget of 10: 5 times"
    assert rows["turns that take URLs, in the partition with most"] == "8"
    unknown = rows_of(figures_of(tmp_path), "queues")
    assert [unknown["queues by (11)"], unknown["mean budget of a PLD, E[B]"]] == ["unknown", "no budgets"]


def test_host_structures_are_beside_polybots_formula(tmp_path: Path) -> None:
    """10 pages a second and a delay of 30 s: 300 hosts rest."""
    figures = figures_of(tmp_path, config=make_config(tmp_path, "crawl", host_delay=30), host_records=7)
    rows = rows_of(figures, "host_structures")
    assert rows["last speed times host delay, s t"] == 300
    assert rows["host structures by the formula, x + s t + n_d + n_t"] == 1 + 300 + 1 + 3
    assert rows["hosts in Redis"] == 1 + 2 + 3 + 4
    assert rows["twice the larger of x and s t"] == 600
    assert rows["host records with robots.txt rules, at most"] == 7


def test_rare_names_are_counted_together(tmp_path: Path) -> None:
    tallies = Tallies()
    for number in range(100):
        tallies.record_answer(200, b"x/%d" % number, None, 10)
    rows = rows_of(figures_of(tmp_path, tallies), "types")
    assert len(rows) == 61
    assert rows["(others)"] == (40, 0.4, 400, 10)


def test_gaps_that_were_too_short_are_told(tmp_path: Path) -> None:
    tallies = Tallies()
    for gap_ms in (900, 1_000, 1_500):
        tallies.host_gaps.count_gap("a.example", gap_ms, 1_000)
    figures = figures_of(tmp_path, tallies)
    due = rows_of(figures, "due")
    assert due["hosts: gaps that were too short"] == "1 of 3"
    assert due["servers: gaps that were too short"] == "none measured"
    assert rows_of(figures, "host_gaps") == {"a.example": (0.9, 1.0, 0.9)}
    assert "server_gaps" not in document_of(figures).to_json()["tables"]


def test_measures_of_a_distributed_crawl(tmp_path: Path) -> None:
    """Coverage of what is known; overlap as a bound; links to other nodes as the share that nodes have counted."""
    tallies = Tallies()
    tallies.record_sent(300, is_elsewhere=True)
    tallies.record_sent(100, is_elsewhere=False)
    rows = [*rows_of(figures_of(tmp_path, tallies), "measures").values()]
    assert rows == ["68.75%", "50", "0", "1 (1.0000%)", "0", "10.00", "7.50 (75.0%)"]


def test_links_are_those_of_pages_not_those_that_were_sent(tmp_path: Path) -> None:
    """A link that a node has sent lately is not sent again, and is one of the page all the same (IRLbot, §7.1)."""
    tallies = Tallies()
    tallies.urls_repeated, tallies.look_ups, tallies.sent_bytes = 9_000, 7, 12_345
    counts = Counter({"appended_urls": 1_000, "seen": 500, "duplicates": 500, "status:200": 100})
    figures = rows_of(figures_of(tmp_path, tallies, counts=counts), "figures")
    assert figures["links, a page (IRLbot's l)"] == "100.0"
    assert figures["share of links that were new (IRLbot's p)"] == "5.00%"
    assert figures["DNS look-ups"] == "7"
    assert figures["bytes of requests, before encryption"] == "12.35 kB"


def test_a_crawl_that_has_just_begun_has_a_report(tmp_path: Path) -> None:
    """Nothing is known, nothing is divided by zero, and what is unknown says so."""
    empty: Columns = {name: [] for name in (TIME_S, *(column.name for column in COLUMNS))}
    figures = figures_of(
        tmp_path, counts=Counter(), history=empty, status=status_of(urls=status_of()["urls"] | {"disk": 0})
    )
    measures = rows_of(figures, "measures")
    assert measures["coverage: URLs that ended, of those that were to be fetched"] == "unknown"
    assert rows_of(figures, "figures")["share of links that were new (IRLbot's p)"] == "unknown"
    assert document_of(figures).to_json()["plots"]["pages_per_s"]["x"] == []


def test_top_plds_have_in_degree_rank_and_budget_as_far_as_known(tmp_path: Path) -> None:
    plds = PldFigures([TopPld("a.example", 50, 9, 7, 1, 10), TopPld("b.example", 5, 9, None, None, None)], [], {}, 3, 2)
    figures = figures_of(tmp_path, plds=plds)
    assert rows_of(figures, "plds") == {
        "a.example": (50, 0.5, 9, 7, 1, 10),
        "b.example": (5, 0.05, 9, None, None, None),
    }
    assert rows_of(figures, "figures")["links from PLD to PLD"] == "3"
    assert "2 partitions are not here" in document_of(figures).to_json()["tables"]["figures"]["note"]


def test_pages_go_by_ranges_of_in_degrees() -> None:
    figures = PldFigures([], [(2, 0), (4, 0), (10, 2), (30, 3), (5, None)], {1: 100, 2: 50}, None, 0)
    assert [tuple(row) for row in by_degree(figures)] == [
        (0, 0, None, 2, 3.0),
        (1, 1, 100, 0, None),
        (2, 3, 50, 2, 20.0),
    ]
    assert percentile([5, 1, 9, 3], 0.5) == 5
    assert percentile([], 0.9) is None


@pytest.mark.parametrize(
    ("span_s", "step_s"), [(60, 10), (3_600, 100), (6 * 3_600, 600), (4 * 86_400, 600), (40 * 86_400, 5_760)]
)
def test_steps_are_of_ten_minutes_unless_they_were_too_few_or_too_many(span_s: float, step_s: float) -> None:
    assert step_s_of(span_s) == step_s


def test_rates_end_where_no_node_ran() -> None:
    rates = HistoryRates(history_of([n * 10.0 for n in range(6 * 360 + 1)], 5.0, stopped=(7_200, 14_400)))
    assert rates.step_s == 600
    assert rates.a_second("pages") == [5.0] * 12 + [None] * 12 + [5.0] * 12
    assert rates.level_per_step("nodes")[12] is None
    assert rates.active_s == 4 * 3_600
    assert rates.ends_s[0] == BEGUN_S + 600


def test_a_long_history_has_bounded_steps() -> None:
    rates = HistoryRates(history_of([n * 3_600.0 for n in range(1_800)]))
    assert len(rates.steps) <= STEPS_MAX
    assert {rate for rate in rates.a_second("pages") if rate is not None} == {10.0}


def test_a_counter_that_fell_is_a_gap() -> None:
    """Redis has forgotten its last second, or the operator had URLs forgotten: no rate is below zero."""
    history = history_of([n * 10.0 for n in range(37)])
    history["seen"][20] = 0.0
    rates = HistoryRates(history).a_second("seen")
    assert rates.count(None) == 1
    assert min(rate for rate in rates if rate is not None) >= 0


def test_a_value_that_was_not_sampled_is_a_gap() -> None:
    history = history_of([n * 10.0 for n in range(61)])
    history["pages"][:30] = [None] * 30
    rates = HistoryRates(history).a_second("pages")
    assert rates.count(None) == len(rates) // 2
    assert set(rates) == {None, 10.0}


def test_a_time_in_which_nothing_ran_is_a_step_of_its_own() -> None:
    """A killed node takes no last sample; two minutes without one are no slope. A thinned history has no break."""
    times = [10.0 * n for n in range(30)] + [410.0 + 10 * n for n in range(30)]
    rates = HistoryRates(history_of(times))
    assert rates.stops == [(BEGUN_S + 290, BEGUN_S + 410)]
    at = rates.ends_s.index(BEGUN_S + 410)
    assert rates.a_second("pages")[at] is None
    assert rates.level_per_step("nodes")[at] is None
    assert rates.a_second("pages")[at + 1] is not None
    assert rates.active_s == times[-1] - 120
    assert HistoryRates(history_of([10.0 * n for n in range(9)] + [90 + 60.0 * n for n in range(9)])).stops == []
