"""Reasons for which pages are not read fit into the detail of an outcome."""

from __future__ import annotations

from bigcrawl.scheduler.records.outcomes import (
    PAGE_RULES,
    REASONS,
    detail_of,
    number_of,
    pack_outcome,
    reason_of,
    rule_of,
)
from bigcrawl.stats import SCRAPY_STATS
from tests.support.running.tables import each


@each("reason", REASONS)
def test_reason_is_stored_as_a_number(reason: str) -> None:
    """Which is that of no filter; the table of stats says what it means."""
    detail = detail_of(reason)
    assert pack_outcome(1, "status:200", detail)
    assert (reason_of(detail), rule_of(detail)) == (reason, None)
    named = {value for stat in SCRAPY_STATS if stat.key.endswith("{reason}") for value, _ in stat.values}
    assert reason in named


def test_other_details_are_no_reasons() -> None:
    """Those of filters, none, and what a later version writes."""
    assert {reason_of(number_of(rule)) for rule in PAGE_RULES} == {None}
    assert reason_of(0) is reason_of(0xFFFF) is None
    assert detail_of("made up") == 0
