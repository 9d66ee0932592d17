"""Votes in a partition: the table, and its part of each step if votes are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bigcrawl.drum.bucket import Kind
from bigcrawl.features.votes.rows import TABLE, VOTES
from bigcrawl.features.votes.settings import VoteConfig
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.tables import Tables


class Votes(Feature):
    name = "votes"
    tables: ClassVar = {TABLE: Kind("vote", VOTES, fresh_max=1024)}
    changes_scores = True

    @classmethod
    def of_config(cls, config: Config) -> Votes | None:
        return cls() if config.feature_config(VoteConfig).are_counted else None

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        from bigcrawl.features.votes.step import VoteStep

        return VoteStep(tables, pld_of)


FEATURE = Votes
