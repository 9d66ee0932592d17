"""Limits set by hand for hosts, PLDs and patterns (step 5): their syntax, checks and storage.

A rule has a name and up to four limits. URLs beyond a limit are withheld, not dropped, and released when the rule
changes.

    budget   URLs that pass in a turn; 0 withholds all
    pages    URLs that pass in total, counted from the first step that knows the rule
    bytes    bytes of bodies fetched in total; fetches already under way at the limit are still completed
    depth    hops from a start URL

    name             applies to                                       limits are counted
    www.example.com  that host                                        for the host
    example.com      all hosts of the PLD                             for the PLD
    *.example.com    all hosts below that name, but not the name      for each host
    *                all hosts                                        for each host
    re:<pattern>     URLs whose canonical form matches it             for each PLD, separately from its other URLs

Each limit comes from the most specific rule that sets it: host, then PLD, then the longest *., then *, then re:. If
several re: match, the smallest value wins. The order in which rules are written does not matter. `rule_book` finds
them.

Rules come from the settings and from one Redis hash (name -> JSON), which can change while the crawl runs. A name in
the hash replaces the settings' rule of that name; `{}` removes it.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.scheduler.rules.names import EVERY, parse_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    BudgetArray = npt.NDArray[np.uint32]


_COUNT_MAX = (1 << 63) - 1

BUDGET_LARGEST = 1_000_000
"""No budget exceeds this, so that a turn of 1,024 budgets can be counted in 32 bits."""

# Limit as users write it -> its maximum, its unit.
_LIMITS: Final[dict[str, tuple[int, str]]] = {
    "budget": (BUDGET_LARGEST, "URLs a turn"),
    "pages": (_COUNT_MAX, "URLs in all"),
    "bytes": (_COUNT_MAX, "bytes in all"),
    "depth": (_COUNT_MAX, "hops"),
}


class Rule(NamedTuple):
    """The limits of one name; None for a limit that is not set."""

    budget: int | None = None
    pages: int | None = None
    fetched_bytes: int | None = None
    depth: int | None = None

    def written(self) -> dict[str, int]:
        """Return the limits that are set, as users write them."""
        pairs = zip(_LIMITS, self, strict=True)
        return {limit: value for limit, value in pairs if value is not None}

    def to_json(self) -> bytes:
        """Return the rule as Redis stores it."""
        return json.dumps(self.written()).encode()


NO_RULE = Rule()


def parse_rules(written: Mapping[str, Mapping[str, object]], where: str = "BIGCRAWL_BUDGET_RULES") -> dict[str, Rule]:
    """Return the rules by normalised name.

    Args:
        written: name -> limit -> value; None means no limit.
        where: the start of each error message.

    Raises:
        ConfigError: a name, a limit or a value is invalid, or one name occurs in two spellings.
    """
    rules: dict[str, Rule] = {}
    for name, limits in written.items():
        normal = parse_rule_name(name, where)
        if normal in rules:
            raise ConfigError(f"{where} has {normal!r} twice, in two spellings; put their limits into one")
        rules[normal] = parse_rule(limits, f"{where}[{name!r}]")
    return rules


def parse_rule_name(name: str, where: str = "BIGCRAWL_BUDGET_RULES") -> str:
    """Return a rule's name in the form in which it is compared and stored; raises as `parse_name`."""
    return name if name == EVERY else parse_name(name, where)


def parse_rule(limits: Mapping[str, object], where: str) -> Rule:
    """Return the rule with these limits.

    Raises:
        ConfigError: a limit is unknown, or its value is not a whole number within bounds.
    """
    for limit, value in limits.items():
        if limit not in _LIMITS:
            close = difflib.get_close_matches(str(limit), _LIMITS, n=1)
            hint = f"did you mean {close[0]}?" if close else "must be one of " + ", ".join(_LIMITS)
            raise ConfigError(f"{where} has an unknown limit {limit!r}; {hint}")
        highest, unit = _LIMITS[limit]
        if value is not None and (type(value) is not int or not 0 <= value <= highest):
            raise ConfigError(
                f"{where}: {limit} is {value!r}; must be a whole number from 0 to {highest:,} {unit}, e.g. 500"
            )
    return Rule(*(limits.get(limit) for limit in _LIMITS))  # type: ignore[arg-type]


def read_live_rules(fields: Mapping[bytes, bytes]) -> tuple[dict[str, Rule], list[str]]:
    """Read the rules of the crawl's Redis hash.

    Returns:
        The valid rules by normalised name, and one message for each invalid rule. Invalid rules are ignored and stop
        nothing.
    """
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
    """Return the rules in force. Live rules replace the settings' by name; rules without limits are dropped."""
    return {name: rule for name, rule in {**settings, **live}.items() if rule != NO_RULE}
