"""The budget of each new URL, and its place in the turns (step 5 of a URL's life): STAR's look-up, then BEAST.

All new URLs of a step need one look-up and one update in the table of PLDs, which also counts new edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.budgets.allowances import Allowances, lower_allowances
from bigcrawl.scheduler.budgets.placement import QUOTA_MAX, find_new_hosts, place_with_hosts
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart, divisors_of
from bigcrawl.scheduler.partition.fold.pld_records import BudgetsInForce, BudgetSource, InDegreeRise, PldRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import DivisorArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.turns import TurnQueues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# A starved step re-reads at most this many URLs, about 40 ms,
REREAD_STARVED_MAX = 8_192
# in batches of this size, so that it stops soon after it has found some.
_REREAD_PORTION = 1_024
# Otherwise a step re-reads this many for each URL that it admits, above the 2 L - 1 = 12 of IRLbot's crawl (Theorem 5),
_REREAD_PER_ADMITTED = 16
# and this many for each that arrives. Else a queue would never be read to its end if pages have a hundred new links.
_REREAD_PER_ARRIVED = 2

# A step scores this many queued URLs again, about 20 ms.
_RESCORED_A_STEP = 4_096

_NOBODY = np.empty(0, dtype=np.uint64)


class BudgetedQueues:
    def __init__(
        self,
        tables: Tables,
        turns: TurnQueues,
        source: BudgetSource,
        features: Sequence[Feature] = (),
        parts: Sequence[StepPart] = (),
    ) -> None:
        self._withholds = source.withholds
        self._prioritizing = source.prioritizing
        self._budgets = source.budgets
        self._units = source.units
        self._tables = tables
        self._turns = turns
        self._plds = PldRecords(tables, source)
        self._features = features
        self._parts = parts
        self._reread_left = REREAD_STARVED_MAX

    def place_arrivals(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, again: Sequence[QueuedUrl] = ()
    ) -> InDegreeRise | None:
        """Place new URLs, then those of `again`, whose next visit is due.

        `linked` repeats a PLD as often as its in-degree rises.
        """
        self._reread_some((len(again) + len(urls)) * _REREAD_PER_ARRIVED)  # over-budget URLs, which came before them
        self._rescore_queued()
        rise = self._append_arrived(urls, linked)
        if again:
            self._append_arrived(again, _NOBODY, is_new=False)
        return rise

    def _append_arrived(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, *, is_new: bool = True
    ) -> InDegreeRise | None:
        urls = self._let_through(urls, reread=False)
        if self._budgets is None and self._turns.is_plain:
            return self._append_unbudgeted(urls, linked)
        if len(urls) or len(linked):
            return self._place_by_budget(urls, linked, reread=False, is_new=is_new)
        return None

    def _rescore_queued(self) -> None:
        turns = self._turns
        if not (turns.rescoring.is_under_way and (found := turns.rescoring.next_urls(turns.front, _RESCORED_A_STEP))):
            return
        tiers, urls = zip(*found, strict=True)
        if self._prioritizing is None:  # only the number of levels has changed
            turns.front.put_back(tiers, urls)
            return
        plds = self._plds.keys(urls)
        links = self._plds.with_new_links(plds, _NOBODY)
        turns.front.put_back(tiers, self._prioritized(urls, plds, links.records["in_degree"][links.whose]))

    def refill(self) -> bool:
        turns = self._turns
        while not turns.advance():
            if self._reread_left <= 0 or not turns.wants_reread(starved=True):
                return False
            self._reread_left -= self._reread_over_budget(_REREAD_PORTION)
        return True

    def reread_for(self, admitted: int) -> None:
        self._reread_some(admitted * _REREAD_PER_ADMITTED)

    def _reread_some(self, count: int) -> None:
        left = min(REREAD_STARVED_MAX, count)
        while left > 0 and self._turns.wants_reread(starved=False):
            left -= self._reread_over_budget(left)

    def _reread_over_budget(self, limit: int) -> int:
        turns = self._turns
        if not turns.over.is_rereading:
            turns.begin_reread()
        urls = turns.over.next_urls(limit)
        if passing := self._let_through(urls, reread=True):
            self._place_by_budget(passing, _NOBODY, reread=True)
        if not turns.over.is_rereading:
            turns.end_reread()
        return len(urls)

    def _let_through(self, urls: Sequence[QueuedUrl], *, reread: bool) -> Sequence[QueuedUrl]:
        if self._withholds is None:
            return urls
        verdicts = [self._withholds(url) for url in urls]
        if not any(verdicts):
            return urls
        self._turns.withhold([url for url, held in zip(urls, verdicts, strict=True) if held], reread=reread)
        return [url for url, held in zip(urls, verdicts, strict=True) if not held]

    def _append_unbudgeted(self, urls: Sequence[QueuedUrl], linked: KeyArray) -> InDegreeRise | None:
        if self._prioritizing is None:
            self._turns.append(urls)
            return None
        plds = self._plds.keys(urls)
        found = self._plds.with_new_links(plds, linked)
        self._turns.append(self._prioritized(urls, plds, found.records["in_degree"][found.whose[: len(urls)]]))
        self._plds.put(found, found.records)
        return found.risen

    def _place_by_budget(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, *, reread: bool, is_new: bool = True
    ) -> InDegreeRise | None:
        count, plds = len(urls), self._plds.keys(urls)
        found = self._plds.with_new_links(plds, linked)
        records = found.records
        if urls:
            in_degrees = records["in_degree"][found.whose[:count]]
            for part in self._parts:
                if is_new and not reread:
                    part.record_new(urls, plds)
                part.announce(urls, plds)
            allowed = lower_allowances(self._allowances_of(urls, plds, in_degrees), plds, self._budget_divisors(plds))
            if allowed.accounts is not plds and not np.array_equal(allowed.accounts, plds):
                found = self._plds.with_accounts(found, allowed.accounts)
            whose, budgets = found.whose[:count], np.zeros(len(found.keys), dtype=np.uint32)
            budgets[whose] = allowed.budgets
            new_hosts = find_new_hosts(self._tables.hosts, *self._plds.host_keys(urls, plds, allowed))
            placed, known = place_with_hosts(
                new_hosts, whose, found.records, budgets, self._turns.window, reread=reread
            )
            if len(known):
                self._tables.commit(self._tables.hosts, self._tables.hosts.check_update(known))
            urls = self._prioritized(allowed.urls, plds, in_degrees)
            self._turns.put(urls, placed.turns.tolist(), placed.tiers.tolist(), reread=reread)
            records = placed.records
        self._plds.put(found, records)
        return found.risen

    def _prioritized(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray) -> Sequence[QueuedUrl]:
        if self._prioritizing is None or not urls:
            return urls
        known = {name: values for part in self._parts for name, values in part.known_of(urls).items()}
        return self._prioritizing.prioritize(urls, in_degrees, self._budget_divisors(plds), known)

    def _budget_divisors(self, plds: KeyArray) -> DivisorArray | None:
        return divisors_of(self._features, self._tables, plds)

    def _allowances_of(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray) -> Allowances:
        if self._budgets is not None:
            allowed = self._budgets.allow(urls, plds, in_degrees, [part.limit for part in self._parts])
            return allowed if self._units is None else self._with_units(allowed, plds, self._budgets, self._units)
        return Allowances(plds, np.full(len(urls), QUOTA_MAX, dtype=np.uint32), urls)

    def _with_units(
        self, allowed: Allowances, plds: KeyArray, in_force: BudgetsInForce, units: BudgetUnits
    ) -> Allowances:
        """Give the URLs of units their own accounts, unless their budget is set by hand."""
        is_fixed = allowed.accounts != plds
        if allowed.by_hand is not None:
            is_fixed |= allowed.by_hand
        keys = np.where(is_fixed, plds, units.keys_of(allowed.urls, plds))
        at, in_degrees = units.own_accounts(keys, plds, lambda some: self._tables.plds.values(some)[1]["in_degree"])
        if not len(at):
            return allowed
        accounts, budgets = allowed.accounts.copy(), allowed.budgets.copy()
        accounts[at] = keys[at]
        budgets[at] = in_force.allow([allowed.urls[one] for one in at], keys[at], in_degrees, ()).budgets
        return allowed._replace(accounts=accounts, budgets=budgets)
