"""Where a partition's steps get budgets, priorities and limits; if these change, URLs are checked or scored again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
    from bigcrawl.scheduler.partition.fold.pld_records import BudgetsInForce, BudgetSource, Withholds
    from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer
    from bigcrawl.scheduler.queues.turns import TurnQueues
    from bigcrawl.scheduler.rules.callbacks import Callbacks

_GROWTH = 1.5  # of the admitted URLs, until queued URLs are scored again
_LEAST = 20


class _CheckRound(NamedTuple):
    source: BudgetSource | None = None
    generation: int | None = None
    admitted: int = 0


class StepSources:
    def __init__(self, source: BudgetSource, limits: PartitionLimits) -> None:
        self.limits = limits
        self._source = source
        self._begun = _CheckRound()
        self._asked: BudgetSource | None = None
        self._committed = _CheckRound()

    def set_host_share(self, urls: int) -> None:
        if urls != self.limits.host_hot_low_now:
            self.limits = replace(self.limits, host_hot_low=urls)

    def set_budgets(self, budgets: BudgetsInForce | None) -> None:
        """Use these budgets. A new object makes the next step re-check all URLs that had no budget."""
        self._source = self._source._replace(budgets=budgets)

    def set_units(self, units: BudgetUnits | None) -> None:
        self._source = self._source._replace(units=units)

    def set_prioritizing(self, prioritizing: SafePrioritizer | None) -> None:
        """Score new URLs with this prioritizer, and queued ones too if its generation is new."""
        self._source = self._source._replace(prioritizing=prioritizing)

    def set_mark(self, mark: int) -> None:
        self._source = self._source._replace(mark=mark)

    def rules_mark(self, turns: TurnQueues) -> int | None:
        if not len(turns.over):
            return self._source.mark
        return None if self._asked is None else self._asked.mark

    def set_withholds(self, withholds: Withholds | None) -> None:
        self._source = self._source._replace(withholds=withholds)

    def set_callbacks(self, callbacks: Callbacks) -> None:
        self._source = self._source._replace(callbacks=callbacks)

    def releasable_from(self, turns: TurnQueues) -> int:
        return sum(turns.unrunnable.releasable(self._source.callbacks).values())

    def begin(self, turns: TurnQueues, admitted: int) -> BudgetSource:
        """Return the source for a step. If it differs from the last step's, queued URLs are checked or scored again."""
        source, last = self._source, self._committed
        if not source.answers_as(self._asked):
            turns.allow_reread()
        generation = None if source.prioritizing is None else source.prioritizing.generation
        is_due = generation not in (None, last.generation) or self._have_scores_changed(source, turns, admitted)
        if is_due:
            turns.begin_rescore()
        self._begun = _CheckRound(source, generation, admitted if is_due else last.admitted)
        return source

    def _have_scores_changed(self, source: BudgetSource, turns: TurnQueues, admitted: int) -> bool:
        """Whether enough URLs were admitted since the last round to score waiting URLs again."""
        changes_scores = source.prioritizing is not None and any(one.changes_scores for one in self.limits.features)
        if not changes_scores or turns.rescoring.is_under_way:
            return False
        return admitted >= max(_LEAST, _GROWTH * self._committed.admitted)

    def end(self, *, is_committed: bool) -> None:
        if is_committed:
            self._committed = self._begun
        self._asked = self._begun.source
