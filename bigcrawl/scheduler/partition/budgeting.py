"""The budget of each new URL, and its place in the turns (step 5): STAR's look-up, then BEAST.

For the new URLs of a step: PLD of each host -> in-degree of each PLD -> account and its budget -> turn. However many
URLs there are, this takes one look-up and one update in the table of PLDs, which also count new edges. Each portion
re-read from the over-budget queue is handled in the same way. An account is a PLD, or a part of one that a rule set by
hand counts separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from bigcrawl.scheduler.budgets.allowances import COUNTED, Allowances
from bigcrawl.scheduler.budgets.new_hosts import find_new_hosts, place_with_hosts
from bigcrawl.scheduler.budgets.placement import QUOTA_MAX
from bigcrawl.scheduler.budgets.traps import NO_TRAPS, TrapChange, Traps, divided
from bigcrawl.scheduler.queues.votes import votes_for
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Totals
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.budgets.placement import IndexArray, RecordArray
    from bigcrawl.scheduler.budgets.traps import TrapRules
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.prioritizers import Prioritizing
    from bigcrawl.scheduler.queues.turns import Turns
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.url.key import PldKey

    PldOf = Callable[[str], str]
    PldKeyOf = Callable[[str], PldKey]
    Withholds = Callable[[QueuedUrl], bool]

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

IN_DEGREE_MAX = 2**32 - 1

_NOBODY = np.empty(0, dtype=np.uint64)


class Budgets(Protocol):
    """What a partition asks for budgets. `bigcrawl.scheduler.budgets.allowances` implements it."""

    def allow(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray, totals: Totals) -> Allowances:
        """Return the account of each URL and its budget in URLs a turn. A budget of 0 lets none of its URLs pass."""
        ...


class BudgetSource(NamedTuple):
    """What a step asks for the budgets of URLs.

    Attributes:
        budgets: how many URLs of a PLD pass in a turn; None for no limit.
        pld_of: returns the PLD of a host; None if each host is its own PLD.
        pld_key: returns the key of a PLD; None for the keys of a crawl without a secret.
        withholds: returns whether a URL is blacklisted, and stays on disk; None if no URL is.
        prioritizing: gives URLs their priorities; None: those of their spider.
        counts_links: whether the links between PLDs are counted.
    """

    budgets: Budgets | None = None
    pld_of: PldOf | None = None
    pld_key: PldKeyOf | None = None
    withholds: Withholds | None = None
    prioritizing: Prioritizing | None = None
    counts_links: bool = False

    @property
    def counts_votes(self) -> bool:
        """Whether pages' votes for URLs are counted."""
        return self.prioritizing is not None and self.prioritizing.counts_votes

    def answers_as(self, other: BudgetSource | None) -> bool:
        """Whether URLs that `other` withheld, or gave no budget, need not be asked about again."""
        return other is not None and self.budgets is other.budgets and self.withholds is other.withholds


class InDegreeRise(NamedTuple):
    """In-degrees that have risen: two arrays of the same length."""

    before: InDegreeArray
    after: InDegreeArray


class _Linked(NamedTuple):
    """Records of the PLDs of URLs and of links, by key.

    Attributes:
        whose: the place of each URL's PLD among the keys, then that of each link's target.
        before: the records as they are in the table.
        records: the same with the in-degrees that the links have raised.
        risen: which in-degrees those are.
    """

    keys: KeyArray
    whose: IndexArray
    before: RecordArray
    records: RecordArray
    risen: InDegreeRise | None


class Budgeting:
    """Places the URLs of one step. It changes the tables and queues that it is given."""

    def __init__(
        self,
        tables: Tables,
        turns: Turns,
        source: BudgetSource,
        traps: TrapRules = NO_TRAPS,
    ) -> None:
        self._withholds = source.withholds
        self._prioritizing = source.prioritizing
        self._tables = tables
        self._turns = turns
        self._budgets = source.budgets
        self._pld_of = source.pld_of or _itself
        self._pld_key = source.pld_key or PUBLIC_KEYS.of_pld
        self._traps = Traps(tables.traps, traps)
        self.trap_changes: tuple[TrapChange, ...] = ()
        self._reread_left = REREAD_STARVED_MAX

    def __repr__(self) -> str:
        return f"<Budgeting {self._budgets!r} {self._turns!r}>"

    def place_arrivals(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, again: Sequence[QueuedUrl] = ()
    ) -> InDegreeRise | None:
        """Place new URLs in the order of their arrival, after those that are visited again.

        Args:
            urls: the URLs.
            linked: PLDs, each as often as its in-degree rises.
            again: URLs whose next visit is due. Their shapes say nothing new of their PLDs.

        Returns:
            The in-degrees that have risen.
        """
        self._reread_some((len(again) + len(urls)) * _REREAD_PER_ARRIVED)  # those that came before them first
        self._rescore()
        if again:
            self._arrive(again, _NOBODY, is_new=False)
        return self._arrive(urls, linked)

    def _arrive(self, urls: Sequence[QueuedUrl], linked: KeyArray, *, is_new: bool = True) -> InDegreeRise | None:
        urls = self._let_through(urls, reread=False)
        if self._budgets is None and self._turns.is_plain:
            return self._append(urls, linked)
        if len(urls) or len(linked):
            return self._place(urls, linked, reread=False, is_new=is_new)
        return None

    def _rescore(self) -> None:
        """Score some of the URLs again that wait in the current turn, if that is due."""
        if self._prioritizing is None or not (found := self._turns.next_to_rescore(_RESCORED_A_STEP)):
            return
        tiers, urls = zip(*found, strict=True)
        plds = self._pld_keys(urls)
        links = self._linked(plds, _NOBODY)
        self._turns.put_back(tiers, self._prioritized(urls, plds, links.records["in_degree"][links.whose]))

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
        urls = turns.next_over_budget(limit)
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
        plds = self._pld_keys(urls)
        keys, whose, before, records, risen = self._linked(plds, linked)
        self._turns.append(self._prioritized(urls, plds, records["in_degree"][whose[: len(urls)]]))
        self._put(keys, before, records)
        return risen

    def _linked(self, plds: KeyArray, linked: KeyArray) -> _Linked:
        """Look up the PLDs of URLs and of links at once, and raise in-degrees by the links."""
        keys, whose = np.unique(np.concatenate((plds, linked)), return_inverse=True)
        _, before = self._tables.plds.values(keys)
        return _Linked(keys, whose, before, *_with_links(before, whose[len(plds) :]))

    def _place(
        self, urls: Sequence[QueuedUrl], linked: KeyArray, *, reread: bool, is_new: bool = True
    ) -> InDegreeRise | None:
        """Raise in-degrees and place URLs by account. Both mostly concern the same PLDs, so one look-up serves them."""
        count, plds = len(urls), self._pld_keys(urls)
        keys, whose, before, records, risen = self._linked(plds, linked)
        if urls:
            in_degrees = records["in_degree"][whose[:count]]
            if is_new and not reread:
                self._note_shapes(urls, plds)
            allowed = self._without_traps(self._allow(urls, plds, in_degrees), plds)
            if allowed.accounts is not plds and not np.array_equal(allowed.accounts, plds):
                keys, before, records, whose = self._with_accounts(keys, before, records, allowed.accounts)
            budgets = np.zeros(len(keys), dtype=np.uint32)
            budgets[whose[:count]] = allowed.budgets
            new_hosts = find_new_hosts(self._tables.hosts, *self._hosts(urls, plds, allowed))
            placed, known = place_with_hosts(
                new_hosts, whose[:count], records, budgets, self._turns.window, reread=reread
            )
            if len(known):
                self._tables.commit(self._tables.hosts, self._tables.hosts.check_update(known))
            urls = self._prioritized(urls, plds, in_degrees)
            self._turns.put(self._counted(urls, allowed), placed.turns.tolist(), placed.tiers.tolist(), reread=reread)
            records = placed.records
        self._put(keys, before, records)
        return risen

    def _put(self, keys: KeyArray, before: RecordArray, records: RecordArray) -> None:
        """Keep the records of PLDs that have changed."""
        table, moved = self._tables.plds, records != before
        if moved.any():
            self._tables.commit(table, table.put(keys[moved], records[moved]))

    def _prioritized(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray) -> Sequence[QueuedUrl]:
        if self._prioritizing is None or not urls:
            return urls
        votes = votes_for(self._tables.votes, urls) if self._prioritizing.counts_votes else None
        return self._prioritizing.prioritized(urls, in_degrees, self._traps.divisors(plds), votes)

    def _note_shapes(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None:
        noted = self._traps.note(urls, plds)
        if noted is not None:
            self._tables.commit(self._tables.traps, self._tables.traps.put(noted.plds, noted.records))
            self.trap_changes += tuple(
                TrapChange(self._pld_of(urls[at].host), verdict) for at, verdict in noted.changes
            )

    def _without_traps(self, allowed: Allowances, plds: KeyArray) -> Allowances:
        """Lower the budgets of PLDs that are caught as traps, except accounts and budgets set by hand."""
        divisors = self._traps.divisors(plds)
        if divisors is None:
            return allowed
        is_free = allowed.accounts != plds
        if allowed.by_hand is not None:
            is_free |= allowed.by_hand
        return allowed._replace(budgets=divided(allowed.budgets, np.where(is_free, 1, divisors).astype(np.uint32)))

    def _allow(self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray) -> Allowances:
        if self._budgets is not None:
            return self._budgets.allow(urls, plds, in_degrees, self._totals_of)
        nothing = np.zeros(len(urls), dtype=np.bool_)
        return Allowances(plds, np.full(len(urls), QUOTA_MAX, dtype=np.uint32), nothing, _NOBODY)

    def _with_accounts(
        self, keys: KeyArray, before: RecordArray, records: RecordArray, accounts: KeyArray
    ) -> tuple[KeyArray, RecordArray, RecordArray, IndexArray]:
        """Add records for accounts that are not among the keys. The last result is the place of each account."""
        others = np.setdiff1d(accounts, keys)
        _, more = self._tables.plds.values(others)
        keys = np.concatenate((keys, others))
        order = np.argsort(keys)
        keys = keys[order]
        before, records = np.concatenate((before, more))[order], np.concatenate((records, more))[order]
        return keys, before, records, np.searchsorted(keys, accounts)

    def _counted(self, urls: Sequence[QueuedUrl], allowed: Allowances) -> Sequence[QueuedUrl]:
        """Count the URLs that totals count now. Return the URLs as they are queued."""
        if not len(allowed.counted_in):
            return urls
        table = self._tables.totals
        accounts, counts = np.unique(allowed.counted_in, return_counts=True)
        _, totals = table.values(accounts)
        totals["pages"] += counts.astype(np.uint64)
        self._tables.commit(table, table.put(accounts, totals))
        pairs = zip(urls, allowed.counted.tolist(), strict=True)
        return [url._replace(flags=url.flags | COUNTED) if is_counted else url for url, is_counted in pairs]

    def _totals_of(self, accounts: KeyArray) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        _, totals = self._tables.totals.values(accounts)
        return totals["pages"], totals["bytes"]

    def _hosts(
        self, urls: Sequence[QueuedUrl], plds: KeyArray, allowed: Allowances
    ) -> tuple[KeyArray, npt.NDArray[np.bool_]]:
        """The key of each URL's host, and whether that host may cost its PLD a part of its budget."""
        if self._budgets is None:
            return plds, np.zeros(len(urls), dtype=np.bool_)
        pld_of, pld_key, nobody = self._pld_of, self._pld_key, np.uint64(0)
        keys = {}
        for host in {url.host for url in urls}:
            is_own = host.removeprefix("www.") == pld_of(host)
            keys[host] = nobody if is_own else pld_key(host)
        hosts = np.array([keys[url.host] for url in urls], dtype=np.uint64)
        may_cost = (hosts != nobody) & (allowed.accounts == plds)
        return hosts, may_cost if allowed.by_hand is None else may_cost & ~allowed.by_hand

    def _pld_keys(self, urls: Sequence[QueuedUrl]) -> KeyArray:
        pld_of, pld_key = self._pld_of, self._pld_key
        keys = {host: pld_key(pld_of(host)) for host in {url.host for url in urls}}
        return np.array([keys[url.host] for url in urls], dtype=np.uint64)


def _with_links(before: RecordArray, linked: IndexArray) -> tuple[RecordArray, InDegreeRise | None]:
    """Return the records, with the in-degree of each linked one raised as often as it is linked."""
    if not len(linked):
        return before, None
    after = before.copy()
    links = np.bincount(linked, minlength=len(before))
    after["in_degree"] = np.minimum(before["in_degree"] + links, IN_DEGREE_MAX)
    return after, InDegreeRise(before["in_degree"][links > 0], after["in_degree"][links > 0])


def _itself(host: str) -> str:
    return host
