from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Allowances, Limiting
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.callbacks import Callbacks
    from bigcrawl.url.key import PldKey

    PldOf = Callable[[str], str]
    PldKeyOf = Callable[[str], PldKey]
    Withholds = Callable[[QueuedUrl], bool]


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
