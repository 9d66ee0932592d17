"""Finds the limits for a host or a URL among the rules set by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.scheduler.rules.budget_rules import LIMITS
from bigcrawl.scheduler.rules.names import BELOW, EVERY, URL_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bigcrawl.scheduler.rules.budget_rules import Rule
    from bigcrawl.url.key import PldKey

    Limits = Mapping[str, "Limit"]

HOSTS_CACHED_MAX = 100_000
"""Hosts whose limits are cached; some 10 MB if few have any."""


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
        """Return the limits of the host's directories and paths that a URL begins with; the longest has the word."""
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
