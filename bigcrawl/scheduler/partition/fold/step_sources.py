"""What the steps of a partition go by, set from outside, and which queued URLs must be asked about again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.queues.looks import NOTHING_LISTED

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
    from bigcrawl.scheduler.partition.fold.budget_source import Budgets, BudgetSource, Withholds
    from bigcrawl.scheduler.queues.looks import Modified
    from bigcrawl.scheduler.queues.prioritizers import Prioritizing
    from bigcrawl.scheduler.queues.turns import Turns
    from bigcrawl.scheduler.rules.callbacks import Callbacks

_VOTES_GROWTH = 1.5  # of the admitted URLs, until votes are worth scoring queued URLs again
_VOTES_LEAST = 20


class _Round(NamedTuple):
    """What a step asked, the generation of its scores, and the admitted URLs when scoring again was begun last."""

    source: BudgetSource | None = None
    generation: int | None = None
    admitted: int = 0


class StepSources:
    """What steps go by, from the next one on. Gives each step its source, and compares it with that of the last one.

    Attributes:
        limits: the bounds of the hot set.
        modified: finds pages that change before their next visit is due. Others may write to it.
    """

    def __init__(self, source: BudgetSource, limits: PartitionLimits) -> None:
        self.limits = limits
        self.modified: Modified = NOTHING_LISTED
        self._source = source
        self._begun = _Round()
        self._asked: BudgetSource | None = None  # by the last step
        self._committed = _Round()  # by the last step that committed anything

    def __repr__(self) -> str:
        return f"<StepSources {self._source!r} scored={self._committed.generation}>"

    def set_host_share(self, urls: int) -> None:
        """Set how many URLs of a host may be hot before other hosts get theirs."""
        if urls != self.limits.low:
            self.limits = replace(self.limits, host_hot_low=urls)

    def set_modified(self, modified: Modified) -> None:
        """Use this to find pages that change before they are due."""
        self.modified = modified

    def set_budgets(self, budgets: Budgets | None) -> None:
        """Use these budgets. None means no limit.

        A new object makes the next step check all URLs again that had no budget. So pass one only if budgets differ.
        """
        self._source = self._source._replace(budgets=budgets)

    def set_prioritizing(self, prioritizing: Prioritizing | None, *, counts_links: bool) -> None:
        """Let this give new URLs their priorities, and count links between PLDs if it asks.

        URLs that wait in turns get theirs again if its generation is another than the last one, or none was set before.
        """
        self._source = self._source._replace(prioritizing=prioritizing, counts_links=counts_links)

    def set_mark(self, mark: int) -> None:
        """Set what identifies the rules by which budgets and blacklist keep URLs on disk."""
        self._source = self._source._replace(mark=mark)

    def asked_mark(self, turns: Turns) -> int | None:
        """Return the mark of the rules by which the URLs over budget were asked about last; None if it is not known."""
        if not len(turns.over):
            return self._source.mark
        return None if self._asked is None else self._asked.mark

    def set_withholds(self, withholds: Withholds | None) -> None:
        """Use this function to find blacklisted URLs. A new function also checks queued URLs."""
        self._source = self._source._replace(withholds=withholds)

    def set_callbacks(self, callbacks: Callbacks) -> None:
        """Use these to find URLs that the owner's spider cannot run."""
        self._source = self._source._replace(callbacks=callbacks)

    def releasable_from(self, turns: Turns) -> int:
        """Return how many of the URLs that could not be run may be tried now."""
        return sum(turns.unrunnable.releasable(self._source.callbacks).values())

    def begin(self, turns: Turns, admitted: int) -> BudgetSource:
        """Return the source of a step, after URLs that it answers otherwise than the last one were made to be asked.

        Args:
            turns: those that the step changes.
            admitted: how many URLs were ever admitted.
        """
        source, last = self._source, self._committed
        if not source.answers_as(self._asked):
            turns.wake()
        generation = None if source.prioritizing is None else source.prioritizing.generation
        is_due = generation not in (None, last.generation) or self._have_votes_changed(source, turns, admitted)
        if is_due:
            turns.begin_rescore()
        self._begun = _Round(source, generation, admitted if is_due else last.admitted)
        return source

    def _have_votes_changed(self, source: BudgetSource, turns: Turns, admitted: int) -> bool:
        """Whether so many URLs were admitted since the last round that their pages' votes are worth another.

        All rounds together look at a URL that waits about three times.
        """
        if not source.counts_votes or turns.rescoring.is_under_way:
            return False
        return admitted >= max(_VOTES_LEAST, _VOTES_GROWTH * self._committed.admitted)

    def end(self, *, is_committed: bool) -> None:
        """Record that the step that was begun has ended, and whether it has committed anything."""
        if is_committed:
            self._committed = self._begun
        self._asked = self._begun.source
