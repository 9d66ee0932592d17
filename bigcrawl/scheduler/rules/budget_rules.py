"""Limits set by hand for hosts, PLDs and patterns (docs/budgets.md).

Rules come from the settings and from a Redis hash (name -> JSON), which may change during the crawl. A name in the hash
replaces the settings' rule of that name; `{}` removes it.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.feature_list import modules_of
from bigcrawl.json_text import read_json
from bigcrawl.scheduler.rules.names import BELOW, EVERY, parse_name
from bigcrawl.table_rows import COUNT_MAX, LimitRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    BudgetArray = npt.NDArray[np.uint32]

    Rule = dict[str, int]
    """The limits of one name that are set, as users write them, in the order of `LIMITS`."""

BUDGET_LARGEST = 1_000_000
"""The largest budget, so that a turn of 1,024 budgets can be counted in 32 bits."""

LIMITS: Final = {
    row.name: row
    for row in (
        LimitRow("budget", BUDGET_LARGEST, "URLs a turn", "URLs that pass per turn; 0 withholds all"),
        *(row for module in modules_of("limits") for row in module.LIMITS),
        LimitRow("depth", COUNT_MAX, "hops", "hops from a start URL"),
    )
}


def parse_rules(written: Mapping[str, Mapping[str, object]], where: str = "BIGCRAWL_BUDGET_RULES") -> dict[str, Rule]:
    """Return rules by normalised name. `written` maps names to limits and their values; None means no limit."""
    rules: dict[str, Rule] = {}
    for name, limits in written.items():
        normal = parse_rule_name(name, where)
        if normal in rules:
            raise ConfigError(f"{where} has {normal!r} twice, in two spellings; put their limits into one of the two")
        rules[normal] = parse_rule(limits, f"{where}[{name!r}]")
    return rules


def parse_rule_name(name: str, where: str = "BIGCRAWL_BUDGET_RULES") -> str:
    if name == EVERY:
        return name
    host, _, path = name.partition("/")
    if not path or ":" in host or host.startswith(BELOW):
        return parse_name(name, where)
    return f"{parse_name(host, where)}/{path}"


def parse_rule(limits: Mapping[str, object], where: str) -> Rule:
    for limit, value in limits.items():
        if limit not in LIMITS:
            close = difflib.get_close_matches(str(limit), LIMITS, n=1)
            hint = f"did you mean {close[0]}?" if close else "must be one of " + ", ".join(LIMITS)
            raise ConfigError(f"{where} has an unknown limit {limit!r}; {hint}")
        row = LIMITS[limit]
        if value is not None and (type(value) is not int or not row.lowest <= value <= row.highest):
            raise ConfigError(
                f"{where}: {limit} is {value!r}; must be a whole number from {row.lowest:,} to {row.highest:,} "
                f"{row.unit}, e.g. 500"
            )
    return {limit: value for limit in LIMITS if type(value := limits.get(limit)) is int}


def rule_json(rule: Rule) -> bytes:
    return json.dumps(rule).encode()


def read_live_rules(fields: Mapping[bytes, bytes]) -> tuple[dict[str, Rule], list[str]]:
    """Return the valid rules by normalised name, and a message for each invalid rule, which is ignored."""
    rules: dict[str, Rule] = {}
    faults: list[str] = []
    for field, value in sorted(fields.items()):
        try:
            name, limits = field.decode(), read_json(value)
            if not isinstance(limits, dict):
                raise ConfigError(f"the crawl's rules must have a table of limits for {name!r}")  # noqa: TRY301
            rules |= parse_rules({name: limits}, "the crawl's rules")
        except ConfigError as fault:
            faults.append(str(fault))
        except ValueError as fault:
            faults.append(f"the crawl's rules have {field!r}, which cannot be read: {fault!r}")
    return rules, faults


def merge_rules(settings: Mapping[str, Rule], live: Mapping[str, Rule]) -> dict[str, Rule]:
    return {name: rule for name, rule in {**settings, **live}.items() if rule}
