"""The budget of each new URL, and its place in the turns (step 5): STAR's look-up, then BEAST.

For the new URLs of a step: PLD of each host -> in-degree of each PLD -> account and its budget -> turn. However many
URLs there are, this takes one look-up and one update in the table of PLDs, which also count new edges. Each portion
re-read from the over-budget queue is handled in the same way. An account is a PLD, or a part of one that a rule set by
hand counts separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.budgets.allowances import Allowances
from bigcrawl.scheduler.budgets.mirrors import NO_MIRRORS
from bigcrawl.scheduler.budgets.new_hosts import find_new_hosts, place_with_hosts
from bigcrawl.scheduler.budgets.placement import QUOTA_MAX
from bigcrawl.scheduler.budgets.traps import NO_TRAPS
from bigcrawl.scheduler.partition.fold.page_totals import PageTotals
from bigcrawl.scheduler.partition.fold.pld_records import PldRecords
from bigcrawl.scheduler.partition.fold.trap_marks import TrapMarks
from bigcrawl.scheduler.queues.votes import votes_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.budgets.mirrors import MirrorChange, MirrorRules
    from bigcrawl.scheduler.budgets.traps import TrapChange, TrapRules
    from bigcrawl.scheduler.partition.fold.budget_source import BudgetSource
    from bigcrawl.scheduler.partition.fold.pld_records import InDegreeRise
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.turns import Turns
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# A starved step re-reads at most this many URLs, about 40 ms,
REREAD_STARVED_MAX = 8_192
# in portions of this size, so that it stops soon after it has found some.
_REREAD_PORTION = 1_024
# Otherwise a step re-reads this many for each URL that it admits, above the 2 L - 1 = 12 of IRLbot's crawl (Theorem 5),
_REREAD_PER_ADMITTED = 16
# and this many for each that arrives. Else a queue would never be read to its end if pages have a hundred new links.
_REREAD_PER_ARRIVED = 2

# A step scores this many queued URLs again, about 20 ms.
_RESCORED_A_STEP = 4_096

_NOBODY = np.empty(0, dtype=np.uint64)


class Budgeting:
    """Places the URLs of one step. It changes the tables and queues that it is given."""

    def __init__(
        self,
        tables: Tables,
        turns: Turns,
        source: BudgetSource,
        traps: TrapRules = NO_TRAPS,
        mirrors: MirrorRules = NO_MIRRORS,
    ) -> None:
        self._withholds = source.withholds
        self._prioritizing = source.prioritizing
        self._budgets = source.budgets
        self._tables = tables
        self._turns = turns
        self._plds = PldRecords(tables, source)
        self._traps = TrapMarks(tables, traps, mirrors, self._plds.pld_of)
        self._totals = PageTotals(tables)
        self._reread_left = REREAD_STARVED_MAX

    def __repr__(self) -> str:
        return f"<Budgeting {self._budgets!r} {self._turns!r}>"

    @property
    def trap_changes(self) -> tuple[TrapChange, ...]:
        """PLDs that were caught as traps, or freed."""
        return self._traps.changes

    @property
    def mirror_changes(self) -> tuple[MirrorChange, ...]:
        """PLDs whose budget is lowered now because they are mirrors, or no longer."""
        return self._traps.mirror_changes

    def place_arrivals(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, again: Sequence[QueuedUrl] = ()
    ) -> InDegreeRise | None:
        """Place new URLs in the order of their arrival, before those that are visited again.

        Of older files a step may read a URL whose next visit is due by now. Admission meets the URL first, and skips it
        as one that Redis has had.

        Args:
            urls: the URLs.
            linked: PLDs, each as often as its in-degree rises.
            again: URLs whose next visit is due. Their shapes say nothing new of their PLDs.

        Returns:
            The in-degrees that have risen.
        """
        self._reread_some((len(again) + len(urls)) * _REREAD_PER_ARRIVED)  # those that came before them first
        self._rescore()
        rise = self._arrive(urls, linked)
        if again:
            self._arrive(again, _NOBODY, is_new=False)
        return rise

    def _arrive(self, urls: Sequence[QueuedUrl], linked: KeyArray, *, is_new: bool = True) -> InDegreeRise | None:
        urls = self._let_through(urls, reread=False)
        if self._budgets is None and self._turns.is_plain:
            return self._append(urls, linked)
        if len(urls) or len(linked):
            return self._place(urls, linked, reread=False, is_new=is_new)
        return None

    def _rescore(self) -> None:
        """Score some of the URLs again that wait in the current turn, if that is due."""
        turns = self._turns
        if self._prioritizing is None or not (found := turns.rescoring.next_urls(turns.front, _RESCORED_A_STEP)):
            return
        tiers, urls = zip(*found, strict=True)
        plds = self._plds.keys(urls)
        links = self._plds.linked(plds, _NOBODY)
        turns.front.put_back(tiers, self._prioritized(urls, plds, links.records["in_degree"][links.whose]))

    def refill(self) -> bool:
        """Fill the empty front queues from the next turn with URLs or by a re-read. Return whether any were found."""
        turns = self._turns
        while not turns.advance():
            if self._reread_left <= 0 or not turns.wants_reread(starved=True):
                return False
            self._reread_left -= self._reread(_REREAD_PORTION)
        return True

    def reread_for(self, admitted: int) -> None:
        """Begin a re-read if it is due, or go on with it, as far as befits a step that admitted this many URLs."""
        self._reread_some(admitted * _REREAD_PER_ADMITTED)

    def _reread_some(self, count: int) -> None:
        left = min(REREAD_STARVED_MAX, count)
        while left > 0 and self._turns.wants_reread(starved=False):
            left -= self._reread(left)

    def _reread(self, limit: int) -> int:
        turns = self._turns
        if not turns.over.is_rereading:
            turns.begin_reread()
        urls = turns.over.next_urls(limit)
        if passing := self._let_through(urls, reread=True):
            self._place(passing, _NOBODY, reread=True)
        if not turns.over.is_rereading:
            turns.end_reread()
        return len(urls)

    def _let_through(self, urls: Sequence[QueuedUrl], *, reread: bool) -> Sequence[QueuedUrl]:
        """Withhold blacklisted URLs, and return the others."""
        if self._withholds is None:
            return urls
        verdicts = [self._withholds(url) for url in urls]
        if not any(verdicts):
            return urls
        self._turns.withhold([url for url, held in zip(urls, verdicts, strict=True) if held], reread=reread)
        return [url for url, held in zip(urls, verdicts, strict=True) if not held]

    def _append(self, urls: Sequence[QueuedUrl], linked: KeyArray) -> InDegreeRise | None:
        """Queue URLs in the current turn, where all are if there are no budgets, and raise in-degrees."""
        if self._prioritizing is None:
            self._turns.append(urls)
            return None
        plds = self._plds.keys(urls)
        found = self._plds.linked(plds, linked)
        self._turns.append(self._prioritized(urls, plds, found.records["in_degree"][found.whose[: len(urls)]]))
        self._plds.put(found, found.records)
        return found.risen

    def _place(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, *, reread: bool, is_new: bool = True
    ) -> InDegreeRise | None:
        """Raise in-degrees and place URLs by account. Both mostly concern the same PLDs, so one look-up serves them."""
        count, plds = len(urls), self._plds.keys(urls)
        found = self._plds.linked(plds, linked)
        records = found.records
        if urls:
            in_degrees = records["in_degree"][found.whose[:count]]
            if is_new and not reread:
                self._traps.note(urls, plds)
            self._traps.tell_mirrors(urls, plds)
            allowed = self._traps.lowered(self._allow(urls, plds, in_degrees), plds)
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
            urls = self._totals.counted(self._prioritized(urls, plds, in_degrees), allowed)
            self._turns.put(urls, placed.turns.tolist(), placed.tiers.tolist(), reread=reread)
            records = placed.records
        self._plds.put(found, records)
        return found.risen

    def _prioritized(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray) -> Sequence[QueuedUrl]:
        if self._prioritizing is None or not urls:
            return urls
        votes = votes_for(self._tables.votes, urls) if self._prioritizing.counts_votes else None
        return self._prioritizing.prioritized(urls, in_degrees, self._traps.divisors(plds), votes)

    def _allow(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray) -> Allowances:
        if self._budgets is not None:
            return self._budgets.allow(urls, plds, in_degrees, self._totals.of)
        nothing = np.zeros(len(urls), dtype=np.bool_)
        return Allowances(plds, np.full(len(urls), QUOTA_MAX, dtype=np.uint32), nothing, _NOBODY)
