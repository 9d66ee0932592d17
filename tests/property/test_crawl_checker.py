"""Laws of the checker of crawls: who is polite is never accused, and every planted fault is found by its name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl_simweb.check.checker import Checker, CheckRules, Exchange, check_exchanges
from bigcrawl_simweb.check.findings import HEADINGS
from tests.support.sizes import examples
from tests.support.worlds.planted_faults import FAULTS, planted
from tests.support.worlds.polite_schedule import MAX_AGES_MS, Schedule, schedules

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=25)


def as_logged(log: list[Exchange]) -> list[Exchange]:
    """In the order of their ends, as servers write them."""
    return sorted(log, key=lambda exchange: exchange.end_ms)


@given(schedules())
@settings(max_examples=examples(200), deadline=None)
def test_polite_crawl_is_never_accused(schedule: Schedule):
    """Whatever the rules, rounding to milliseconds, late arrivals and late notices do not make a fault."""
    report = check_exchanges(as_logged(schedule.log), schedule.rules)
    assert report.ok, str(report)
    assert report.coverage == 1.0


@pytest.mark.parametrize("kind", HEADINGS)
@given(data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_planted_fault_is_found_and_no_other(kind: str, data: st.DataObject):
    """One fault of a kind at any moment of any polite crawl is reported, once and under its name only."""
    schedule = data.draw(schedules(**FAULTS[kind].needs))
    # Rules that grow old soon are so by the end of what is put off.
    ages = schedule.rules.robots_max_age_ms == MAX_AGES_MS[0] or kind == "robots_stale"
    cut = len(schedule.log) if ages else data.draw(st.integers(0, len(schedule.log)))
    log, rules = planted(schedule, kind, cut)
    report = check_exchanges(as_logged(log), rules)
    assert report.kinds == {kind}, str(report)
    assert len(getattr(report, kind)) == 1


@given(schedules(), st.randoms())
@settings(max_examples=examples(50), deadline=None)
def test_streaming_and_sorting_agree(schedule: Schedule, dice):
    """A log that comes in order of start needs no sorting; within a millisecond its order is no matter."""
    checker = Checker(schedule.rules)
    log = list(schedule.log)
    dice.shuffle(log)
    for exchange in sorted(log, key=lambda exchange: exchange.start_ms):
        checker.add(exchange)
    assert checker.report().ok


@given(SPANS, st.integers(1, 4))
def test_too_many_at_once_are_those_that_counting_finds(spans: list[tuple[int, int]], connections: int):
    """A request is one too many if, of those before it, as many are open as may be: counted for each, one by one."""
    log = [Exchange(start_ms, start_ms + lasts_ms, "a", f"/{n}", 200) for n, (start_ms, lasts_ms) in enumerate(spans)]
    log.sort(key=lambda exchange: (exchange.start_ms, exchange.end_ms))
    counted = [
        later.target
        for number, later in enumerate(log)
        if sum(earlier.end_ms > later.start_ms for earlier in log[:number]) >= connections
    ]
    report = check_exchanges(log, CheckRules(host_connections=connections))
    assert [gap.later.target for gap in report.concurrent] == counted
    assert report.kinds <= {"concurrent"}
