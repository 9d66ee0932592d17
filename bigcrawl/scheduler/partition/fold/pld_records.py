"""The records of the PLDs in a step: one look-up for those of its URLs and of its links, and one update."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from bigcrawl.scheduler.budgets.in_degrees import are_ranked
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS, Callbacks
from bigcrawl.url.key import PUBLIC_KEYS, PldKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Allowances, Limiting
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.budgets.placement import IndexArray, RecordArray
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

    PldOf = Callable[[str], str]
    PldKeyOf = Callable[[str], PldKey]
    Withholds = Callable[[QueuedUrl], bool]

IN_DEGREE_MAX = 2**32 - 1


class BudgetsInForce(Protocol):
    def allow(
        self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray, limiting: Sequence[Limiting]
    ) -> Allowances: ...


class BudgetSource(NamedTuple):
    """The source of budgets and priorities; `mark` identifies the rules of `budgets` and `withholds`."""

    budgets: BudgetsInForce | None = None
    pld_of: PldOf | None = None
    pld_key: PldKeyOf | None = None
    withholds: Withholds | None = None
    prioritizing: SafePrioritizer | None = None
    callbacks: Callbacks = ANY_CALLBACKS
    mark: int = 0
    units: BudgetUnits | None = None

    @property
    def counts_links(self) -> bool:
        return self.budgets is not None or (self.prioritizing is not None and self.prioritizing.counts_links)

    def answers_as(self, other: BudgetSource | None) -> bool:
        """Whether URLs that `other` withheld, or gave no budget, need not be checked again."""
        return other is not None and self.budgets is other.budgets and self.withholds is other.withholds


class InDegreeRise(NamedTuple):
    before: InDegreeArray
    after: InDegreeArray


class LinkedPlds(NamedTuple):
    """Records of the PLDs of URLs and of links, by key.

    `whose` is the index of each URL's PLD in the keys, then that of each link's target.
    """

    keys: KeyArray
    whose: IndexArray
    before: RecordArray
    records: RecordArray
    risen: InDegreeRise | None


class PldRecords:
    def __init__(self, tables: Tables, source: BudgetSource) -> None:
        self._tables = tables
        self._has_budgets = source.budgets is not None
        self.pld_of = source.pld_of or _host_itself
        self._pld_key = source.pld_key or PUBLIC_KEYS.of_pld

    def keys(self, urls: Sequence[QueuedUrl]) -> KeyArray:
        pld_of, pld_key = self.pld_of, self._pld_key
        keys = {host: pld_key(pld_of(host)) for host in {url.host for url in urls}}
        return np.array([keys[url.host] for url in urls], dtype=np.uint64)

    def host_keys(
        self, urls: Sequence[QueuedUrl], plds: KeyArray, allowed: Allowances
    ) -> tuple[KeyArray, npt.NDArray[np.bool_]]:
        """Return the key of each URL's host, and whether the host may be charged to its PLD's budget."""
        if not self._has_budgets:
            return plds, np.zeros(len(urls), dtype=np.bool_)
        pld_of, pld_key, nobody = self.pld_of, self._pld_key, np.uint64(0)
        keys = {}
        for host in {url.host for url in urls}:
            is_own = host.removeprefix("www.") == pld_of(host)
            keys[host] = nobody if is_own else pld_key(host)
        hosts = np.array([keys[url.host] for url in urls], dtype=np.uint64)
        may_cost = (hosts != nobody) & (allowed.accounts == plds)
        return hosts, may_cost if allowed.by_hand is None else may_cost & ~allowed.by_hand

    def with_new_links(self, plds: KeyArray, linked: KeyArray) -> LinkedPlds:
        together = np.concatenate((plds, linked))
        keys = np.unique(together)
        whose = keys.searchsorted(together)  # for the few PLDs of a step half the time of np.unique's inverse
        _, before = self._tables.plds.values(keys)
        return LinkedPlds(keys, whose, before, *_with_links(before, whose[len(plds) :], are_ranked(keys)))

    def with_accounts(self, found: LinkedPlds, accounts: KeyArray) -> LinkedPlds:
        """Add records for accounts that are not among the keys; `whose` becomes the index of each account."""
        others = np.setdiff1d(accounts, found.keys)
        _, more = self._tables.plds.values(others)
        keys = np.concatenate((found.keys, others))
        order = np.argsort(keys)
        keys = keys[order]
        before = np.concatenate((found.before, more))[order]
        records = np.concatenate((found.records, more))[order]
        return LinkedPlds(keys, np.searchsorted(keys, accounts), before, records, found.risen)

    def put(self, found: LinkedPlds, records: RecordArray) -> None:
        table, moved = self._tables.plds, records != found.before
        if moved.any():
            self._tables.commit(table, table.put(found.keys[moved], records[moved]))


def _with_links(
    before: RecordArray, linked: IndexArray, ranked: npt.NDArray[np.bool_]
) -> tuple[RecordArray, InDegreeRise | None]:
    if not len(linked):
        return before, None
    after = before.copy()
    links = np.bincount(linked, minlength=len(before))
    after["in_degree"] = np.minimum(before["in_degree"] + links, IN_DEGREE_MAX)
    risen = (links > 0) & ranked
    return after, InDegreeRise(before["in_degree"][risen], after["in_degree"][risen])


def _host_itself(host: str) -> str:
    return host
