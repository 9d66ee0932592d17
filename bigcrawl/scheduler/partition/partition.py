"""One partition's state on disk: a fold over its inbox. The manifest is the commit.

No Redis, no clock, no asyncio, and only one thread at once. A step works on a fork of the state. It writes files that
no manifest names yet, and then appends a record to the manifest that names them. A failure before that leaves disk and
memory as they were, so the same step can be repeated. A crash may leave files and bytes that no manifest names, which
are never read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.drum.files import DiskFiles, Files, store_errors
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
from bigcrawl.scheduler.partition.committed import CommittedFiles
from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
from bigcrawl.scheduler.partition.fold.feature import divisors_of
from bigcrawl.scheduler.partition.fold.pld_records import BudgetsInForce, BudgetSource
from bigcrawl.scheduler.partition.fold.seen import entries_after
from bigcrawl.scheduler.partition.fold.step import Step, StepFold
from bigcrawl.scheduler.partition.fold.step_sources import StepSources
from bigcrawl.scheduler.partition.takeover import OpenedPartition, open_epoch
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.observed import weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.partition.fold.pld_records import PldKeyOf, PldOf
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

__all__ = ["AdmitBatch", "Partition", "PartitionLimits", "Step"]

ADMIT_URLS_MAX = 1_000  # in a batch: one admission blocks Redis about 3 us a URL


class Partition:
    """One partition, opened in one epoch by its owner.

    Guarantees:
        A URL in a folded inbox entry is admitted in exactly one batch, across epochs. The caller must admit each
            committed batch, and not offer folded entries again. URLs of one host and priority level are admitted in
            order of arrival, unless the blacklist withheld them or scores change.
    """

    def __init__(
        self,
        opened: OpenedPartition,
        limits: PartitionLimits,
        source: BudgetSource,
        require_place: Callable[[], None] | None,
    ) -> None:
        self._directory = opened.directory
        self.committed = CommittedFiles(opened.directory, opened.own, opened.log, opened.manifest, require_place)
        self.state = opened.state
        self.sources = StepSources(source, limits)
        self.set_aside = opened.set_aside
        self._folded_rows = 0

    @classmethod
    def open(
        cls,
        directory: Path,
        epoch: int,
        limits: PartitionLimits,
        files: Files | None = None,
        *,
        fall_back: bool = False,
        budgets: BudgetsInForce | None = None,
        pld_of: PldOf | None = None,
        pld_key: PldKeyOf | None = None,
        require_place: Callable[[], None] | None = None,
    ) -> Partition:
        """Open a partition in a new epoch, with the state of the newest manifest.

        `epoch` must be above `directory.last_epoch`, and is used once. With `fall_back`, a damaged state, as after a
        power failure, is replaced by the last sound or durable one; URLs that Redis has admitted since must then be
        folded (`fold_admitted`). `require_place` raises TransientStoreError unless the directory's parent is the
        intended one; it is called before the first step makes the directory of a new partition.

        Raises:
            OwnershipLostError: the epoch, or a later one, was opened before; the first step may raise this, too.
            CorruptionError: the manifest or a file that it names is damaged. The partition never starts from empty.
            TransientStoreError: the disk failed or is full. The call may be repeated with the same epoch.
        """
        files = files or DiskFiles()
        opened = open_epoch(directory, epoch, files, limits, fall_back=fall_back)
        partition = cls(opened, limits, BudgetSource(budgets, pld_of, pld_key), require_place)
        if require_place is None:
            with store_errors(directory):
                partition.committed.begin()
        return partition

    def __repr__(self) -> str:
        return (
            f"<Partition {self._directory.name} epoch={self.manifest.epoch} manifest={self.manifest.number} "
            f"seen={len(self.state.tables.seen)} waiting={self.state.waiting} batch={self.manifest.batch_number}>"
        )

    @property
    def manifest(self) -> Manifest:
        return self.committed.manifest

    def step(
        self,
        inbox: Sequence[InboxEntry | tuple[str, bytes]],
        room: int,
        hot: Mapping[str, int],
        away: Mapping[str, int] | None = None,
        extra_room: int | None = None,
        now_s: int = 0,
    ) -> Step:
        """Fold inbox entries, choose up to `room` URLs to admit, and commit; after an error the state has not changed.

        Entries, or pairs (id, batch), are in stream order; those up to the manifest's `inbox_id` are skipped. `hot`
        counts the URLs of each host in Redis. `away` has the snoozed or retired hosts, with the number of their URLs
        that may be hot regardless of the room. Extra URLs are admitted only while fewer than `extra_room` are chosen.
        """
        with store_errors(self._directory):
            before, sources, own = self.manifest, self.sources, self.committed.own
            entries = [e if isinstance(e, InboxEntry) else InboxEntry(*e) for e in inbox]
            fresh = entries_after(entries, before.inbox_id)
            if fresh:
                self.committed.begin()  # before a full table in memory becomes a file
            work = self.state.fork()
            source = sources.begin(work.turns, before.admitted)
            pld_of = source.pld_of or str
            parts = [feature.begin(work.tables, pld_of) for feature in sources.limits.features]
            fold = StepFold(work, own.set_aside, parts)
            fold.read(fresh, source, now_s)
            chosen = fold.choose(source, room, hot, sources.limits, away, extra_room)
            batch = AdmitBatch(before.batch_number + 1, before.admitted, chosen) if chosen else None
            if has_changed := bool(fresh) or work.differs(self.state):
                self.committed.begin()
                work.flush()
                after = replace(
                    fold.counted_in(work.describe(before, self.state)),
                    inbox_id=fresh[-1].id if fresh else before.inbox_id,
                    batch_number=before.batch_number + bool(batch),
                    admitted=before.admitted + len(chosen),
                )
                self.committed.commit(after, batch)
                self.state = work
            self._folded_rows += sum(weight_of(entry.observed) for entry in fresh)
            sources.end(is_committed=has_changed)
            if self.set_aside or fold.rejected:
                self.set_aside = own.count_set_aside()
            return fold.outcome(batch)

    @property
    def releasable(self) -> int:
        return self.sources.releasable_from(self.state.turns)

    @property
    def rules_mark(self) -> int | None:
        return self.sources.rules_mark(self.state.turns)

    @property
    def folded_ever(self) -> int:
        """URLs ever read from the inbox; observed rows count by their bytes."""
        return self.manifest.folded_urls + self._folded_rows

    def fold_admitted(self, batches: Mapping[int, Sequence[int]], upto: int = 0) -> None:
        """Commit that Redis admitted batches beyond this manifest. URLs of missing ones, up to `upto`, come again."""
        before, last = self.manifest, max((upto, *batches))
        if last <= before.batch_number:
            return
        beyond = range(before.batch_number + 1, last + 1)
        keys = [key for number in beyond for key in batches.get(number, ())]
        missing = sum(number not in batches for number in beyond)
        work = self.state.without_admitted(keys)
        with store_errors(self._directory):
            self.committed.begin()
            after = replace(
                work.describe(before, self.state),
                batch_number=last,
                admitted=before.admitted + len(keys) + missing * ADMIT_URLS_MAX,
            )
            self.committed.commit(after)
        self.state = work

    def ends_of(self, keys: KeyArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        with store_errors(self._directory):
            return self.state.tables.ends.values(keys)

    def have_ended(self, urls: Sequence[QueuedUrl]) -> npt.NDArray[np.bool_]:
        tables = self.state.tables
        with store_errors(self._directory):
            ended, _ = tables.ends.values(np.array([url.key for url in urls], dtype=KEY_TYPE))
            for feature in self.sources.limits.features:
                ended = feature.ended_since(tables, urls, ended)
            return ended

    def in_degrees(self, plds: KeyArray) -> npt.NDArray[np.uint32]:
        with store_errors(self._directory):
            return self.state.tables.plds.values(plds)[1]["in_degree"]

    def budget_divisors(self, plds: KeyArray) -> npt.NDArray[np.uint32] | None:
        with store_errors(self._directory):
            return divisors_of(self.sources.limits.features, self.state.tables, plds)

    def _check(self) -> None:
        self.state._check(self.manifest)
        self.committed._check()
