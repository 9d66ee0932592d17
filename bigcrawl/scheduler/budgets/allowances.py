"""Finds the budget of each URL in a batch, by policy and by rules set by hand.

A budget belongs to an *account*, a 64-bit key: that of the URL's PLD, or a separate one for a host or pattern with a
budget set by hand. URLs beyond a limit get the account `WITHHELD`, so that they do not hold up the rest of their PLD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.scheduler.budgets.policies import UnlimitedBudgets, make_policy
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.config import BudgetConfig
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray, InDegreeCounts
    from bigcrawl.scheduler.budgets.policy import BudgetArray, BudgetPolicy
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.budget_rules import Limits, RuleBook

    Limiting = Callable[[Sequence["BoundUrl"]], None]
    Look = Callable[[bytes], tuple[str, int]]

    DivisorArray = npt.NDArray[np.uint32]

WITHHELD = PUBLIC_KEYS.of_pld("withheld for a limit")  # no PLD contains a space


def divide_budgets(budgets: npt.NDArray[np.uint32], divisors: DivisorArray) -> npt.NDArray[np.uint32]:
    fewer: npt.NDArray[np.uint32] = np.minimum(budgets, np.maximum(budgets // divisors, 1))
    return fewer


def lower_allowances(allowed: Allowances, plds: KeyArray, divisors: DivisorArray | None) -> Allowances:
    """Divide the budgets of URLs, except those with separate accounts or set by hand."""
    if divisors is None:
        return allowed
    is_free = allowed.accounts != plds
    if allowed.by_hand is not None:
        is_free |= allowed.by_hand
    return allowed._replace(budgets=divide_budgets(allowed.budgets, np.where(is_free, 1, divisors).astype(np.uint32)))


class Allowances(NamedTuple):
    """The decision for a batch of n URLs, in order.

    Attributes:
        accounts: uint64, shape (n,).
        budgets: uint32, shape (n,): URLs of the account that pass in a turn.
        by_hand: bool, shape (n,): URLs whose budget a rule sets, which nothing else lowers; None for none.
    """

    accounts: KeyArray
    budgets: BudgetArray
    urls: Sequence[QueuedUrl]
    by_hand: npt.NDArray[np.bool_] | None = None


@dataclass(slots=True)
class BoundUrl:
    url: QueuedUrl
    limits: Limits
    account: int
    budget: int

    def flag(self, flags: int) -> None:
        self.url = self.url._replace(flags=self.url.flags | flags)

    def prioritize(self, priority: int) -> None:
        self.url = self.url._replace(priority=priority)

    def withhold(self) -> None:
        self.account, self.budget = WITHHELD, 0


class EffectiveBudgets:
    def __init__(self, policy: BudgetPolicy, book: RuleBook, look: Look) -> None:
        self._policy = policy
        self._book = book
        self._look = look
        by_pld = book.pld_budgets()
        self._ruled = np.array(sorted(by_pld), dtype=KEY_TYPE)
        self._ruled_budgets = np.array([by_pld[pld] for pld in sorted(by_pld)], dtype=np.uint32)

    def __repr__(self) -> str:
        return f"<EffectiveBudgets {self._policy!r} {self._book!r}>"

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        budgets = self._policy.budgets(plds, in_degrees)
        if len(self._ruled):
            at = np.minimum(np.searchsorted(self._ruled, plds), len(self._ruled) - 1)
            budgets = np.where(self._ruled[at] == plds, self._ruled_budgets[at], budgets)
        return budgets

    def is_by_hand(self, plds: KeyArray) -> npt.NDArray[np.bool_]:
        return np.isin(plds, self._ruled)

    def allow(
        self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray, limiting: Sequence[Limiting] = ()
    ) -> Allowances:
        """Find account and budget of new, withheld or over-budget URLs; `limiting` are features' limits."""
        budgets = self.budgets(plds, in_degrees)
        if not len(self._book):
            return Allowances(plds, budgets, urls)
        accounts, budgets, queued = plds.astype(KEY_TYPE), budgets.astype(np.uint32), list(urls)
        bound: dict[int, BoundUrl] = {}
        for at, url in enumerate(urls):
            limits, depth = self._limits_of(url)
            if limits:
                bound[at] = _limited_url(BoundUrl(url, limits, int(accounts[at]), int(budgets[at])), depth)
        for limit in limiting:
            if passing := [one for one in bound.values() if one.account != WITHHELD]:
                limit(passing)
        for at, one in bound.items():
            accounts[at], budgets[at], queued[at] = one.account, one.budget, one.url
        return Allowances(accounts, budgets, queued, self.is_by_hand(plds) if len(self._ruled) else None)

    def _limits_of(self, url: QueuedUrl) -> tuple[Limits, int]:
        limits = self._book.for_host(url.host)
        if not self._book.needs_urls and "depth" not in limits:
            return limits, 0
        address, depth = self._look(url.body)
        return self._book.for_url(url.host, address) if self._book.needs_urls else limits, depth


def make_budgets(config: BudgetConfig, counts: InDegreeCounts, book: RuleBook, look: Look) -> EffectiveBudgets | None:
    """Return the budgets by settings and rules, or None if there are none; `book` replaces the settings' rules."""
    policy = make_policy(config, counts)
    if policy is None and not len(book):
        return None
    return EffectiveBudgets(policy or UnlimitedBudgets(), book, look)


def _limited_url(one: BoundUrl, depth: int) -> BoundUrl:
    own, deepest = one.limits.get("budget"), one.limits.get("depth")
    if deepest and depth > deepest.value:
        one.withhold()
    elif own:
        one.account, one.budget = own.account, own.value
    return one
