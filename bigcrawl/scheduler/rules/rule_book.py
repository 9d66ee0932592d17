"""Finds the limits for a host or a URL among the rules set by hand (step 5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.rules.names import BELOW, EVERY, URL_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.scheduler.rules.budget_rules import Rule
    from bigcrawl.url.key import PldKey

HOSTS_CACHED_MAX = 100_000
"""How many hosts' limits are cached, the same number as for PLDs: some 10 MB if few have any."""


class Limit(NamedTuple):
    """One limit that applies to a URL.

    Attributes:
        value: as written.
        rule: the name of the rule that sets it.
        account: 64 bits, a PLD's key or derived like one; URLs with the same account are counted together.
    """

    value: int
    rule: str
    account: int


class Limits(NamedTuple):
    """The limits of a URL or a host, in the order of `Rule`; None for one that is not set."""

    budget: Limit | None = None
    pages: Limit | None = None
    fetched_bytes: Limit | None = None
    depth: Limit | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class _Pattern:
    name: str
    search: Callable[[str], re.Match[str] | None]
    rule: Rule


class RuleBook:
    """The rules in force, looked up by host or by URL.

    Args:
        rules: by normalised name, as `merge_rules` returns them.
        pld: returns a host's PLD, by the crawl's own public-suffix list.
        pld_key: returns a PLD's key, by the crawl's own secret; also used to make accounts.

    Cost: 0.1 us for a host that was asked for recently, some microseconds otherwise. Each re: rule adds one regular
    expression search a URL.
    """

    def __init__(self, rules: Mapping[str, Rule], pld: Callable[[str], str], pld_key: Callable[[str], PldKey]) -> None:
        self._by_name = {name: rule for name, rule in rules.items() if not name.startswith(URL_PATTERN)}
        self._patterns = [
            _Pattern(name, re.compile(name.removeprefix(URL_PATTERN)).search, rule)
            for name, rule in sorted(rules.items())
            if name.startswith(URL_PATTERN)
        ]
        self._pld = pld
        self._pld_key = pld_key
        self._cached = lru_cache(HOSTS_CACHED_MAX)(self._look_up)

    def __repr__(self) -> str:
        return f"<RuleBook {len(self._by_name)} names, {len(self._patterns)} patterns>"

    def __len__(self) -> int:
        return len(self._by_name) + len(self._patterns)

    @property
    def needs_urls(self) -> bool:
        """Whether limits depend on the URL and not only on its host."""
        return bool(self._patterns)

    def pld_budgets(self) -> dict[int, int]:
        """Return the budgets that rules set for whole PLDs: PLD key -> URLs a turn."""
        return {
            self._pld_key(name): rule.budget
            for name, rule in self._by_name.items()
            if rule.budget is not None and not name.startswith((BELOW, EVERY)) and self._pld(name) == name
        }

    def for_host(self, host: str) -> Limits:
        """Return the limits that apply to all of a host."""
        return self._cached(host) if self._by_name else NO_LIMITS

    def for_url(self, host: str, url: str) -> Limits:
        """Return the limits that apply to a canonical URL of the host."""
        limits = self.for_host(host)
        found = [pattern for pattern in self._patterns if None in limits and pattern.search(url)]
        if not found:
            return limits
        pld = self._pld(host)
        return Limits(*(limit or self._smallest(found, at, pld) for at, limit in enumerate(limits)))

    def _look_up(self, host: str) -> Limits:
        pld = self._pld(host)
        names = [host, pld, *_above(host)] if host != pld else [pld, *_above(host)]
        chain = [(name, self._by_name[name]) for name in names if name in self._by_name]
        if not chain:
            return NO_LIMITS
        own = self._pld_key(f"host {host}")  # no PLD has a space
        of_pld = self._pld_key(pld)
        found: list[Limit | None] = []
        for at in range(len(Limits._fields)):
            name, value = next(((name, rule[at]) for name, rule in chain if rule[at] is not None), ("", None))
            account = of_pld if name == pld else own
            found.append(None if value is None else Limit(value, name, account))
        return Limits(*found)

    def _smallest(self, patterns: list[_Pattern], at: int, pld: str) -> Limit | None:
        limits = [(value, pattern.name) for pattern in patterns if (value := pattern.rule[at]) is not None]
        if not limits:
            return None
        value, name = min(limits)
        return Limit(value, name, self._pld_key(f"{name} {pld}"))


def _above(host: str) -> list[str]:
    """Return the starred rules that can cover a host, longest first: for a.b.c those of b.c and c, and that of all."""
    labels = host.split(".")
    return [*(BELOW + ".".join(labels[at:]) for at in range(1, len(labels))), EVERY]
