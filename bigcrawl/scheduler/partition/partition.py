"""One partition's state on disk: a fold over its inbox (steps 4 to 7). The manifest is the commit.

Rules for this file: no Redis, no clock, no asyncio, and one thread at a time. A step works on a fork of the state. It
writes files that nothing refers to yet, and then appends a record to the manifest that refers to them. A failure before
that leaves disk and memory as they were, so the same step can be repeated.

    step          inbox -> a fold on copies (`fold.step`) -> record appended to MANIFEST    no fsync
    make_durable  fsync all that MANIFEST names, MANIFEST, the directory; then delete what it does not name
    open          newest manifest of any epoch -> a new epoch's (`partition.opening`)

A crash may leave files in e<epoch>/ that no manifest names, bytes behind a segment's committed length or behind the
manifest's last whole record, and a directory without a manifest. None of them is ever read. An admit batch is part of
the step's record. `committed.batches` returns those that were committed and not sent to Redis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.scheduler.budgets.lowered import divisors_of
from bigcrawl.scheduler.budgets.mirrors import Mirrors
from bigcrawl.scheduler.budgets.traps import Traps
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
from bigcrawl.scheduler.partition.committed import CommittedFiles
from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
from bigcrawl.scheduler.partition.fold.budget_source import BudgetSource
from bigcrawl.scheduler.partition.fold.seen import entries_after
from bigcrawl.scheduler.partition.fold.step import Step, StepFold
from bigcrawl.scheduler.partition.fold.step_sources import StepSources
from bigcrawl.scheduler.partition.opening import Opened, open_epoch
from bigcrawl.scheduler.records.contents import rows_in
from bigcrawl.scheduler.records.inbox_entry import InboxEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.partition.fold.budget_source import Budgets, PldKeyOf, PldOf
    from bigcrawl.scheduler.partition.manifest import Manifest

__all__ = ["AdmitBatch", "Partition", "PartitionLimits", "Step"]

ADMIT_URLS_MAX = 1_000  # in a batch: one admission blocks Redis about 3 us a URL


class Partition:
    """One partition, opened in one epoch by its owner.

    Guarantees:
        A URL in a folded inbox entry is admitted in exactly one batch, across epochs. The caller must admit each
        committed batch (`committed.batches`), and not offer folded entries again. URLs of one host and
        priority level are admitted in the order of their arrival, except those that the blacklist withheld, and until
        scores change.

    Memory is bounded by the inbox of a step, one decoded block a level, and the number of hosts with parked URLs.

    Attributes:
        committed: the manifest, and the files that it names.
        state: what the manifest describes. Others only read it; a step replaces it.
        sources: what steps go by, set from outside.
        set_aside: how many inbox entries were below `rejected/` when a step last looked.
    """

    def __init__(
        self, opened: Opened, limits: PartitionLimits, source: BudgetSource, require_place: Callable[[], None] | None
    ) -> None:
        """Begin with what was opened."""
        self._directory = opened.directory
        self.committed = CommittedFiles(opened.directory, opened.own, opened.log, opened.manifest, require_place)
        self.state = opened.state
        self.sources = StepSources(source, limits)
        self.set_aside = opened.set_aside
        self._folded_contents = 0  # in URLs

    @classmethod
    def open(
        cls,
        directory: Path,
        epoch: int,
        limits: PartitionLimits,
        files: Files | None = None,
        *,
        fall_back: bool = False,
        budgets: Budgets | None = None,
        pld_of: PldOf | None = None,
        pld_key: PldKeyOf | None = None,
        require_place: Callable[[], None] | None = None,
    ) -> Partition:
        """Open a partition in a new epoch, taking over what the newest manifest describes.

        Args:
            directory: the directory of the partition, ``<state>/p<id>``. It is made if it is missing.
            epoch: a number above `directory.last_epoch`. Each is used once.
            limits: the bounds of the hot set.
            files: the file system; the real one by default.
            fall_back: if the newest manifest is damaged or names lost bytes, as after a power cut, go back to the last
                sound or durable one. What Redis has admitted since must then be folded (`fold_admitted`).
            budgets: how many URLs of a PLD pass in a turn; None for no limit. See `StepSources.set_budgets`.
            pld_of: a host's PLD; by default each host is its own.
            pld_key: the key of a PLD; by default that of a crawl without a secret.
            require_place: raises TransientStoreError if the directory's parent is not the one that is meant. If it is
                given, the first step makes the directory of a new partition, and calls it before.

        Raises:
            OwnershipLostError: the epoch, or a later one, was opened before. The first step may find that, too.
            CorruptionError: the manifest or a file that it names is damaged. The partition never starts from empty.
            TransientStoreError: the disk failed or is full. The call may be repeated with the same epoch.
        """
        files = files or DiskFiles()
        opened = open_epoch(directory, epoch, files, priority_bias=limits.priority_bias, fall_back=fall_back)
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
        """The committed manifest, with the partition's counts. A commit replaces it."""
        return self.committed.manifest

    # --- steps

    def step(
        self,
        inbox: Sequence[InboxEntry | tuple[str, bytes]],
        room: int,
        hot: Mapping[str, int],
        away: Mapping[str, int] | None = None,
        extra_room: int | None = None,
        now_s: int = 0,
    ) -> Step:
        """Fold inbox entries, choose what to admit, and commit.

        Args:
            inbox: entries in stream order, or pairs (id, batch). Those up to the manifest's `inbox_id` are skipped.
                Without budgets, edges are ignored, unless the prioritizer asks for in-degrees.
            room: how many URLs may be admitted.
            hot: how many URLs of each host are in Redis, including taken ones.
            away: hosts that are snoozed or retired, with the number of their URLs that may be hot whatever the room.
            extra_room: take URLs beyond their PLD's budget while fewer than this many URLs are chosen; None for `room`.
            now_s: the time of the crawls, in seconds since 1970. URLs whose next visit is due are queued like new ones.

        Raises:
            TransientStoreError: the disk failed or is full. Nothing has changed; repeat the step later.
            CorruptionError: a file is damaged. Nothing has changed.
        """
        with store_errors(self._directory):
            before, sources, own = self.manifest, self.sources, self.committed.own
            entries = [e if isinstance(e, InboxEntry) else InboxEntry(*e) for e in inbox]
            fresh = entries_after(entries, before.inbox_id)
            if fresh:
                self.committed.begin()  # before a full table in memory becomes a file
            work = self.state.fork()
            source = sources.begin(work.turns, before.admitted)
            fold = StepFold(work, own.set_aside, sources.limits.mirrors)
            fold.read(fresh, source, now_s, sources.modified)
            chosen = fold.choose(source, room, hot, sources.limits, away, extra_room)
            batch = AdmitBatch(before.batch_number + 1, before.admitted, chosen) if chosen else None
            if has_changed := bool(fresh) or work.differs(self.state):
                self.committed.begin()
                work.flush()
                after = replace(
                    fold.counted_in(work.described(before, self.state)),
                    inbox_id=fresh[-1].id if fresh else before.inbox_id,
                    batch_number=before.batch_number + bool(batch),
                    admitted=before.admitted + len(chosen),
                )
                self.committed.commit(after, batch)
                self.state = work
            self._folded_contents += sum(rows_in(entry.contents) for entry in fresh)
            sources.end(is_committed=has_changed)
            if self.set_aside or fold.rejected:
                self.set_aside = own.count_set_aside()
            return fold.outcome(batch)

    @property
    def releasable(self) -> int:
        """How many of the URLs that could not be run may be tried now."""
        return self.sources.releasable_from(self.state.turns)

    @property
    def asked_mark(self) -> int | None:
        """The mark of the rules by which URLs are withheld; see `StepSources.asked_mark`."""
        return self.sources.asked_mark(self.state.turns)

    @property
    def folded_ever(self) -> int:
        """How many URLs were ever read from the inbox; rows about contents count by their bytes."""
        return self.manifest.folded_urls + self._folded_contents

    def fold_admitted(self, batches: Mapping[int, Sequence[int]], upto: int = 0) -> None:
        """Count as admitted what Redis has admitted beyond this manifest, and commit that.

        Admission skips each of the keys once when it next meets the URL, whether that waits on disk already or is still
        in the inbox.

        Args:
            batches: the keys of the batches that Redis has, by number. Those that were committed are ignored.
            upto: the last batch that Redis admitted; by default the last of `batches`. URLs of a missing batch are
                admitted again, with new sequence numbers.
        """
        before, last = self.manifest, max((upto, *batches))
        if last <= before.batch_number:
            return
        beyond = range(before.batch_number + 1, last + 1)
        keys = [key for number in beyond for key in batches.get(number, ())]
        missing = sum(number not in batches for number in beyond)
        work = self.state.skipping(keys)
        with store_errors(self._directory):
            self.committed.begin()
            after = replace(
                work.described(before, self.state),
                batch_number=last,
                admitted=before.admitted + len(keys) + missing * ADMIT_URLS_MAX,
            )
            self.committed.commit(after)
        self.state = work

    # --- looking up

    def ends(self, keys: KeyArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Return which URLs have ended, and how, as values of `outcomes.VALUE`. URLs are given by their keys.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self.state.tables.ends.values(keys)

    def visits(self, keys: KeyArray) -> npt.NDArray[np.uint32]:
        """Return how often each URL's page was visited, given its key; 0 if it is not visited again.

        Raises what `ends` does.
        """
        with store_errors(self._directory):
            return self.state.tables.visits.values(keys)[1]["number"]

    def in_degrees(self, plds: KeyArray) -> npt.NDArray[np.uint32]:
        """Return the in-degree of each PLD, given its key; 0 if no link to it is known. Raises what `ends` does."""
        with store_errors(self._directory):
            return self.state.tables.plds.values(plds)[1]["in_degree"]

    def budget_divisors(self, plds: KeyArray) -> npt.NDArray[np.uint32] | None:
        """Return the divisors of PLDs' budgets, given their keys, or None if none of them is a trap or mirror.

        Raises what `ends` does.
        """
        with store_errors(self._directory):
            tables, limits = self.state.tables, self.sources.limits
            return divisors_of(Traps(tables.traps, limits.traps), Mirrors(tables.mirrors, limits.mirrors), plds)

    # --- checking

    def _check(self) -> None:
        self.state._check(self.manifest)
        self.committed._check()
