"""Decides what share of a batch of URLs may pass, by policy and by rules set by hand (step 5). The fold places them.

Each URL gets an *account*, 64 bits, and that account's budget: the number of its URLs that BEAST lets pass in a turn.
The account is usually the key of the URL's PLD. A host or a pattern with a budget of its own has its own account. URLs
beyond a limit get the account `WITHHELD`, whose budget is 0, so that they do not hold up the rest of their PLD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.scheduler.budgets.policies import Unlimited, make_policy
from bigcrawl.scheduler.rules.rule_book import NO_LIMITS
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.config import BudgetConfig
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray, InDegreeCounts
    from bigcrawl.scheduler.budgets.policies import BudgetArray, BudgetPolicy
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.rule_book import Limit, Limits, RuleBook

    TotalArray = npt.NDArray[np.uint64]
    Totals = Callable[[KeyArray], tuple[TotalArray, TotalArray]]
    Look = Callable[[bytes], tuple[str, int]]

COUNTED = 2
"""A bit of `QueuedUrl.flags`: the URL is already in a total of pages, and is not counted again when re-read."""

WITHHELD = PUBLIC_KEYS.of_pld("withheld for a limit")  # a constant; no PLD has a space


class Allowances(NamedTuple):
    """The decision for a batch of n URLs, in its order.

    Attributes:
        accounts: uint64, shape (n,): the account of each URL; turns count by account.
        budgets: uint32, shape (n,): how many URLs of the account pass in a turn; equal within an account.
        counted: bool, shape (n,): URLs that a total of pages counts now. They must be queued with the flag
            `COUNTED`, whatever queue the turns put them into.
        counted_in: uint64, one for each counted URL, in order: the account whose pages grow by one.
        by_hand: bool, shape (n,): URLs whose budget a rule sets, so that nothing else lowers it; None if none.
    """

    accounts: KeyArray
    budgets: BudgetArray
    counted: npt.NDArray[np.bool_]
    counted_in: KeyArray
    by_hand: npt.NDArray[np.bool_] | None = None


class EffectiveBudgets:
    """A budget policy, overridden by rules set by hand.

    Args:
        policy: the budgets of PLDs without rules.
        book: the rules in force.
        look: returns the canonical URL and depth of a queued URL's body; called only if a rule needs them.
    """

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
        """Like `BudgetPolicy.budgets`, but with the budgets that rules set for whole PLDs. Ignores all other limits.

        Cost: that of the policy; if there are such rules, 10 us and 50 ns a PLD more.
        """
        budgets = self._policy.budgets(plds, in_degrees)
        if len(self._ruled):
            at = np.minimum(np.searchsorted(self._ruled, plds), len(self._ruled) - 1)
            budgets = np.where(self._ruled[at] == plds, self._ruled_budgets[at], budgets)
        return budgets

    def allow(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray, totals: Totals) -> Allowances:
        """Decide about a batch of URLs that are new, or were withheld or over budget before.

        Args:
            urls: n of them, in the order in which they are to pass.
            plds: key of each one's PLD, uint64, shape (n,).
            in_degrees: of each PLD, uint32, shape (n,).
            totals: accounts -> (pages, bytes), uint64, 0 for an unknown account; called only if a rule limits them.
                Pages are all URLs that `allow` has counted in the account. Bytes are those of bodies fetched while
                `book.for_url` returned the account for the URL's `fetched_bytes`.

        Cost: that of `budgets`. If there are rules, 0.4 us a URL more, and 2 us for a URL to which one applies.
        """
        budgets = self.budgets(plds, in_degrees)
        if not len(self._book):
            return Allowances(plds, budgets, np.zeros(len(urls), dtype=np.bool_), np.empty(0, dtype=KEY_TYPE))
        batch = _Batch(plds.astype(KEY_TYPE), budgets.astype(np.uint32), np.zeros(len(urls), dtype=np.bool_))
        bound = [(at, *found) for at, url in enumerate(urls) if (found := self._limits_of(url))[0] is not NO_LIMITS]
        left = _totals_left([limits for _, limits, _ in bound], totals)
        for at, limits, depth in bound:
            batch.decide(at, limits, depth, left, is_counted=bool(urls[at].flags & COUNTED))
        counted_in = np.array(batch.counted_in, dtype=KEY_TYPE)
        by_hand = np.isin(plds, self._ruled) if len(self._ruled) else None
        return Allowances(batch.accounts, batch.budgets, batch.counted, counted_in, by_hand)

    def _limits_of(self, url: QueuedUrl) -> tuple[Limits, int]:
        """Return the limits, and the depth if one of them needs it."""
        limits = self._book.for_host(url.host)
        if not self._book.needs_urls and limits.depth is None:
            return limits, 0
        address, depth = self._look(url.body)
        return self._book.for_url(url.host, address) if self._book.needs_urls else limits, depth


def make_budgets(config: BudgetConfig, counts: InDegreeCounts, book: RuleBook, look: Look) -> EffectiveBudgets | None:
    """Return the budgets that settings and rules define, or None if they define none.

    Args:
        config: the settings; its rules are ignored in favour of `book`.
        counts: in-degrees of the whole crawl.
        book: as for `EffectiveBudgets`.
        look: as for `EffectiveBudgets`.

    Raises:
        ConfigError: the policy is unknown, fails to construct, or its numbers contradict each other.
    """
    policy = make_policy(config, counts)
    if policy is None and not len(book):
        return None
    return EffectiveBudgets(policy or Unlimited(), book, look)


class _Left(NamedTuple):
    """How many more pages and bytes each account may have; 0 or less if none."""

    pages: dict[int, int]
    fetched_bytes: dict[int, int]


class _Batch:
    """The decisions about a batch so far."""

    def __init__(self, accounts: KeyArray, budgets: BudgetArray, counted: npt.NDArray[np.bool_]) -> None:
        self.accounts = accounts
        self.budgets = budgets
        self.counted = counted
        self.counted_in: list[int] = []

    def decide(self, at: int, limits: Limits, depth: int, left: _Left, *, is_counted: bool) -> None:
        """Decide about one URL. Earlier URLs have already used their share of the pages left."""
        pages = None if is_counted else limits.pages
        if (
            (limits.depth and depth > limits.depth.value)
            or (limits.fetched_bytes and left.fetched_bytes[limits.fetched_bytes.account] <= 0)
            or (pages and left.pages[pages.account] <= 0)
        ):
            self.accounts[at], self.budgets[at] = WITHHELD, 0
            return
        if limits.budget:
            self.accounts[at], self.budgets[at] = limits.budget.account, limits.budget.value
        if pages and self.budgets[at]:
            left.pages[pages.account] -= 1
            self.counted[at] = True
            self.counted_in.append(pages.account)


def _totals_left(bound: Sequence[Limits], totals: Totals) -> _Left:
    """Return what is left of the totals in these limits."""
    pages = {limits.pages.account: limits.pages for limits in bound if limits.pages}
    sizes = {limits.fetched_bytes.account: limits.fetched_bytes for limits in bound if limits.fetched_bytes}
    accounts = sorted({*pages, *sizes})
    if not accounts:
        return _Left({}, {})
    used = [column.tolist() for column in totals(np.array(accounts, dtype=KEY_TYPE))]
    return _Left(_left_of(pages, accounts, used[0]), _left_of(sizes, accounts, used[1]))


def _left_of(limits: dict[int, Limit], accounts: Sequence[int], used: Sequence[int]) -> dict[int, int]:
    by_account = dict(zip(accounts, used, strict=True))
    return {account: limit.value - by_account[account] for account, limit in limits.items()}
