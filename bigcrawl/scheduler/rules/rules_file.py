"""Checks the file of BIGCRAWL_RULES, so that an error names its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.config.rules_file import BUDGETS, DELAYS, PAGES, read_rules
from bigcrawl.scheduler.rules.budget_rules import parse_rules
from bigcrawl.scheduler.rules.delay_rules import parse_delays
from bigcrawl.scheduler.rules.page_rules import parse_page_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Table = Mapping[str, Mapping[str, object]]


def check_rules(path: str) -> None:
    """Raise ConfigError for the first line with an invalid name or value."""
    checks: dict[str, Callable[[Table, str], object]] = {
        BUDGETS: parse_rules,
        DELAYS: parse_delays,
        PAGES: parse_page_rules,
    }
    for row in read_rules(path):
        for table, limits in row.tables.items():
            checks[table]({row.name: limits}, f"{path}, line {row.number}")
