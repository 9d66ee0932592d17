"""Limits set by hand for hosts, PLDs and patterns (docs/budgets.md), and those among them for a host or a URL.

Rules come from the settings and from a Redis hash (name -> JSON), which may change during the crawl. A name in the hash
replaces the settings' rule of that name; `{}` removes it.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.feature_list import modules_of
from bigcrawl.json_text import read_json
from bigcrawl.scheduler.rules.names import BELOW, EVERY, URL_PATTERN, parse_name
from bigcrawl.table_rows import COUNT_MAX, LimitRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    BudgetArray = npt.NDArray[np.uint32]

    Rule = dict[str, int]
    """The limits of one name that are set, as users write them, in the order of `LIMITS`."""
    from collections.abc import Callable, Iterable

    from bigcrawl.url.key import PldKey

    Limits = Mapping[str, "Limit"]

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

HOSTS_CACHED_MAX = 100_000
"""Hosts whose limits are cached; some 10 MB if few have any."""


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


class Limit(NamedTuple):
    """A limit that applies to a URL; URLs with the same account (64 bits) are counted together."""

    value: int
    rule: str
    account: int


NO_LIMITS: Final[Limits] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _PatternRule:
    name: str
    search: Callable[[str], re.Match[str] | None]
    rule: Rule


class RuleBook:
    def __init__(
        self,
        rules: Mapping[str, Rule],
        pld: Callable[[str], str],
        pld_key: Callable[[str], PldKey],
        limits: Iterable[str] = LIMITS,
    ) -> None:
        self._limits = tuple(limits)
        self._by_name = {name: rule for name, rule in rules.items() if not name.startswith(URL_PATTERN)}
        self._directories: dict[str, list[tuple[str, str, Rule]]] = {}
        for name in sorted((name for name in self._by_name if "/" in name), key=len, reverse=True):
            host, _, path = name.partition("/")
            self._directories.setdefault(host, []).append((f"/{path}", name, self._by_name.pop(name)))
        self._patterns = [
            _PatternRule(name, re.compile(name.removeprefix(URL_PATTERN)).search, rule)
            for name, rule in sorted(rules.items())
            if name.startswith(URL_PATTERN)
        ]
        self._pld = pld
        self._pld_key = pld_key
        self._cached = lru_cache(HOSTS_CACHED_MAX)(self._look_up)

    def __len__(self) -> int:
        return len(self._by_name) + len(self._patterns) + sum(map(len, self._directories.values()))

    @property
    def needs_urls(self) -> bool:
        return bool(self._patterns or self._directories)

    def pld_budgets(self) -> dict[int, int]:
        return {
            self._pld_key(name): rule["budget"]
            for name, rule in self._by_name.items()
            if "budget" in rule and not name.startswith((BELOW, EVERY)) and self._pld(name) == name
        }

    def for_host(self, host: str) -> Limits:
        return self._cached(host) if self._by_name else NO_LIMITS

    def for_url(self, host: str, url: str) -> Limits:
        limits = self.for_host(host)
        if host in self._directories:
            limits = {**limits, **self._below(host, url)}
        if len(limits) == len(self._limits) or not (found := [one for one in self._patterns if one.search(url)]):
            return limits
        pld = self._pld(host)
        all_limits = ((name, limits.get(name) or self._smallest_limit(found, name, pld)) for name in self._limits)
        return {name: limit for name, limit in all_limits if limit}

    def _below(self, host: str, url: str) -> Limits:
        """Return the limits of the host's directories and paths that contain the URL; the longest path wins."""
        target = url[url.find("/", url.find("//") + 2) :]
        found: dict[str, Limit] = {}
        for path, name, rule in self._directories[host]:
            if target.startswith(path):
                account = self._pld_key(name)  # no PLD contains a slash
                found = {limit: Limit(value, name, account) for limit, value in rule.items()} | found
        return found

    def _look_up(self, host: str) -> Limits:
        pld = self._pld(host)
        names = [host, pld, *_names_above(host)] if host != pld else [pld, *_names_above(host)]
        chain = [(name, self._by_name[name]) for name in names if name in self._by_name]
        if not chain:
            return NO_LIMITS
        own = self._pld_key(f"host {host}")  # no PLD contains a space
        of_pld = self._pld_key(pld)
        found = {}
        for limit in self._limits:
            name, rule = next((one for one in chain if limit in one[1]), ("", {}))
            if name:
                found[limit] = Limit(rule[limit], name, of_pld if name == pld else own)
        return found

    def _smallest_limit(self, patterns: list[_PatternRule], name: str, pld: str) -> Limit | None:
        limits = [(pattern.rule[name], pattern.name) for pattern in patterns if name in pattern.rule]
        if not limits:
            return None
        value, rule = min(limits)
        return Limit(value, rule, self._pld_key(f"{rule} {pld}"))


def _names_above(host: str) -> list[str]:
    labels = host.split(".")
    return [*(BELOW + ".".join(labels[at:]) for at in range(1, len(labels))), EVERY]
