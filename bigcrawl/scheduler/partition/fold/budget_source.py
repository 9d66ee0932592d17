"""What a step asks for the budgets and priorities of URLs. It is set from outside, and may be another at each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Allowances, Totals
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.queues.prioritizers import Prioritizing
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.callbacks import Callbacks
    from bigcrawl.url.key import PldKey

    PldOf = Callable[[str], str]
    PldKeyOf = Callable[[str], PldKey]
    Withholds = Callable[[QueuedUrl], bool]


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
        callbacks: says which requests the owner's spider can run.
        mark: identifies the rules by which `budgets` and `withholds` keep URLs on disk.
    """

    budgets: Budgets | None = None
    pld_of: PldOf | None = None
    pld_key: PldKeyOf | None = None
    withholds: Withholds | None = None
    prioritizing: Prioritizing | None = None
    counts_links: bool = False
    callbacks: Callbacks = ANY_CALLBACKS
    mark: int = 0

    @property
    def counts_votes(self) -> bool:
        """Whether pages' votes for URLs are counted."""
        return self.prioritizing is not None and self.prioritizing.counts_votes

    def answers_as(self, other: BudgetSource | None) -> bool:
        """Whether URLs that `other` withheld, or gave no budget, need not be asked about again."""
        return other is not None and self.budgets is other.budgets and self.withholds is other.withholds
