"""A partition's tables, each a bucket of DRUM, with records looked up by key (steps 4 and 5).

    name     file    key                          value
    seen     run     URL                          none; the set of all keys is URLSeen
    edges    edge    source and target PLD        none; the set of all keys is IRLbot's PLD graph
    plds     pld     PLD, or another account      in-degree (how many other PLDs link to it), and where its last URL was
                                                  placed, see `bigcrawl.scheduler.budgets.placement`
    totals   total   account                      pages and bytes so far, which rules set by hand limit, see
                                                  `bigcrawl.scheduler.budgets.allowances`
    ends     end     URL                          how and when it ended, see `bigcrawl.scheduler.records.outcomes`
    traps    trap    PLD                          how many of its newest URLs look like a trap's, see
                                                  `bigcrawl.scheduler.budgets.traps`
    hosts    host    host                         none; hosts whose robots.txt was charged to their PLD's budget, see
                                                  `bigcrawl.scheduler.budgets.new_hosts`
    visits   visit   URL                          how often it was visited, if it is visited again, see
                                                  `bigcrawl.scheduler.records.revisits`
    votes    vote    URL                          what pages that link to it say of it, see
                                                  `bigcrawl.scheduler.records.votes`
    contents content  content of pages            the page that had it first, see `bigcrawl.content.exact_copies`
    near     near     band of contents            the content that others are compared with, a page that has it, and its
                                                  sketch, see `bigcrawl.content.near_copies`
    copies   copy     page and content            the page that it is a copy of, see `bigcrawl.content.copies`
    sites    site     sample of contents          the greatest PLD that has it, see `bigcrawl.scheduler.budgets.mirrors`
    samples  sample   PLD                         how many of its samples greater PLDs have too, see likewise
    mirrors  mirror   PLD                         whether it is a mirror, if it ever was one, see likewise

A content or band lies in the partition that its own key names, whatever the partitions of its pages.

To add a table, add a field of `TableStates`, a kind, an attribute of `Tables`, and a row here and in
docs/file-formats.md. Then raise the version of the manifest's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.content.copies import COPIES
from bigcrawl.content.exact_copies import CONTENTS
from bigcrawl.content.near_copies import NEAR
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, BucketState, Kind
from bigcrawl.scheduler.budgets import traps
from bigcrawl.scheduler.budgets.mirrors import MIRRORS, SAMPLES, SITES
from bigcrawl.scheduler.budgets.placement import RECORD
from bigcrawl.scheduler.records.outcomes import VALUE
from bigcrawl.scheduler.records.votes import VOTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.drum.bucket import ApplyResult, CheckResult
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory

# A small bound, because each new log of the manifest has all records of the memtables, and these tables change with
# every step too.
_FRESH_MAX = 1024

VISITS = np.dtype([("number", "<u4")])
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
    visits: BucketState = EMPTY_BUCKET
    votes: BucketState = EMPTY_BUCKET
    contents: BucketState = EMPTY_BUCKET
    near: BucketState = EMPTY_BUCKET
    copies: BucketState = EMPTY_BUCKET
    sites: BucketState = EMPTY_BUCKET
    samples: BucketState = EMPTY_BUCKET
    mirrors: BucketState = EMPTY_BUCKET


NO_TABLES = TableStates()

KINDS = {
    "seen": Kind("run"),
    "edges": Kind("edge", fresh_max=_FRESH_MAX),
    "plds": Kind("pld", RECORD, fresh_max=_FRESH_MAX),
    "totals": Kind("total", TOTAL, fresh_max=_FRESH_MAX),
    "ends": Kind("end", VALUE, fresh_max=_FRESH_MAX),
    "traps": Kind("trap", traps.RECORD, fresh_max=_FRESH_MAX),
    "hosts": Kind("host", fresh_max=_FRESH_MAX),
    "visits": Kind("visit", VISITS, fresh_max=_FRESH_MAX),
    "votes": Kind("vote", VOTES, fresh_max=_FRESH_MAX),
    "contents": CONTENTS,
    "near": NEAR,
    "copies": COPIES,
    "sites": SITES,
    "samples": SAMPLES,
    "mirrors": MIRRORS,
}
"""The kind of each table, in the order of `TableStates`."""

assert tuple(KINDS) == TableStates._fields


class Tables:
    """The tables of one owner, or of one of its steps."""

    def __init__(self, epoch: EpochDirectory, buckets: Iterable[Bucket]) -> None:
        self._epoch = epoch
        self._all = tuple(buckets)
        self.seen, self.edges, self.plds, self.totals, self.ends, self.traps, self.hosts, self.visits = self._all[:8]
        self.votes, self.contents, self.near, self.copies = self._all[8:12]
        self.sites, self.samples, self.mirrors = self._all[12:]

    @classmethod
    def restore(cls, epoch: EpochDirectory, states: TableStates) -> Tables:
        """Return the tables that a manifest describes."""
        pairs = zip(KINDS.values(), states, strict=True)
        return cls(epoch, (Bucket(epoch.path, kind, state, epoch.files) for kind, state in pairs))

    def __repr__(self) -> str:
        return f"<Tables {' '.join(map(repr, self._all))}>"

    def fork(self) -> Tables:
        """Return a copy to change. This one stays as it is."""
        return Tables(self._epoch, [bucket.fork() for bucket in self._all])

    def states(self) -> TableStates:
        """Return the states for the manifest."""
        return TableStates(*(bucket.state for bucket in self._all))

    def commit(self, bucket: Bucket, result: CheckResult | ApplyResult) -> None:
        """Adopt a result in one of these tables. Files that it wrote will be synced, or deleted if unreferenced."""
        for run in result.written:
            self._epoch.note_written(run.name)
        bucket.commit(result)

    def verify(self) -> list[CorruptionError]:
        """Read every byte of every run and return what is damaged."""
        return [problem for bucket in self._all for problem in bucket.verify()]

    def _check(self) -> None:
        for bucket in self._all:
            bucket._check()
