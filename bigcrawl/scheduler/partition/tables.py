"""A partition's tables: what it looks up by key, each a bucket of DRUM (steps 4 and 5).

    name     file    key                          value
    seen     run     of the URL                   none: URLSeen
    edges    edge    of source and target PLD     none: who links to whom, IRLbot's PLD graph
    plds     pld     of the PLD, or the account   in-degree: other PLDs that link to it; and where its last URL was
                                                  placed, see `bigcrawl.scheduler.budgets.placement`
    totals   total   of the account               what rules by hand count, see `bigcrawl.scheduler.budgets.allowances`
    ends     end     of the URL                   how and when it ended, see `bigcrawl.scheduler.records.outcomes`
    traps    trap    of the PLD                   how many of its newest URLs look like a trap's, see
                                                  `bigcrawl.scheduler.budgets.traps`
    hosts    host    of the host                  none: whose robots.txt their PLD's budget has paid for, see
                                                  `bigcrawl.scheduler.budgets.new_hosts`

To add one: a field of `TableStates`, a kind, an attribute of `Tables`, a row here and in docs/file-formats.md; and
raise the version of the manifest's log.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, BucketState, Kind
from bigcrawl.scheduler.budgets import traps
from bigcrawl.scheduler.budgets.placement import RECORD
from bigcrawl.scheduler.records.outcomes import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.drum.bucket import ApplyResult, CheckResult
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory

# Fresh records are part of every log that is begun anew, and the smaller tables change with every step too.
_FRESH_MAX = 1024

TOTAL = np.dtype([("pages", "<u8"), ("bytes", "<u8")])


class TableStates(NamedTuple):
    """The tables as the manifest holds them."""

    seen: BucketState = EMPTY_BUCKET
    edges: BucketState = EMPTY_BUCKET
    plds: BucketState = EMPTY_BUCKET
    totals: BucketState = EMPTY_BUCKET
    ends: BucketState = EMPTY_BUCKET
    traps: BucketState = EMPTY_BUCKET
    hosts: BucketState = EMPTY_BUCKET


NO_TABLES = TableStates()

KINDS = {
    "seen": Kind("run"),
    "edges": Kind("edge", fresh_max=_FRESH_MAX),
    "plds": Kind("pld", RECORD, fresh_max=_FRESH_MAX),
    "totals": Kind("total", TOTAL, fresh_max=_FRESH_MAX),
    "ends": Kind("end", VALUE, fresh_max=_FRESH_MAX),
    "traps": Kind("trap", traps.RECORD, fresh_max=_FRESH_MAX),
    "hosts": Kind("host", fresh_max=_FRESH_MAX),
}
"""By table, in the order of `TableStates`."""

assert tuple(KINDS) == TableStates._fields


class Tables:
    """The tables of one owner, or of one of its steps."""

    def __init__(self, epoch: EpochDirectory, buckets: Iterable[Bucket]) -> None:
        self._epoch = epoch
        self._all = tuple(buckets)
        self.seen, self.edges, self.plds, self.totals, self.ends, self.traps, self.hosts = self._all

    @classmethod
    def restore(cls, epoch: EpochDirectory, states: TableStates) -> Tables:
        """Return the tables a manifest describes."""
        pairs = zip(KINDS.values(), states, strict=True)
        return cls(epoch, (Bucket(epoch.path, kind, state, epoch.files) for kind, state in pairs))

    def __repr__(self) -> str:
        return f"<Tables {' '.join(map(repr, self._all))}>"

    def fork(self) -> Tables:
        """Return a copy to work on; this one stays as it is."""
        return Tables(self._epoch, map(copy, self._all))

    def states(self) -> TableStates:
        """Return what the manifest needs."""
        return TableStates(*(bucket.state for bucket in self._all))

    def commit(self, bucket: Bucket, result: CheckResult | ApplyResult) -> None:
        """Let one of these tables be what a result says; what it wrote is synced or, unreferenced, deleted."""
        for run in result.written:
            self._epoch.note_written(run.name)
        bucket.commit(result)

    def verify(self) -> list[CorruptionError]:
        """Read every byte of every run and return what is damaged."""
        return [problem for bucket in self._all for problem in bucket.verify()]

    def _check(self) -> None:
        for bucket in self._all:
            bucket._check()
