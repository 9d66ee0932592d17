"""One partition's state on disk: a fold over its inbox (steps 4 to 7). The manifest is the commit.

Rules for this file: no Redis, no clock, no asyncio, and one thread at a time. A step works on a fork of the state. It
writes files that nothing refers to yet, and then appends a record to the manifest that refers to them. A failure before
that leaves disk and memory as they were, so the same step can be repeated.

    step          inbox -> a fold on copies (`fold.step`) -> record appended to MANIFEST    no fsync
    make_durable  fsync all that MANIFEST names, MANIFEST, the directory; then delete what it does not name
    open          newest manifest of any epoch -> a new epoch's (`partition.opening`)

A crash may leave files in e<epoch>/ that no manifest names, bytes behind a segment's committed length or behind the
manifest's last whole record, and a directory without a manifest. None of them is ever read. An admit batch is part of
the step's record. `pending_batches` returns those that were committed and not sent to Redis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
from bigcrawl.scheduler.partition.committed import CommittedFiles
from bigcrawl.scheduler.partition.figures import PartitionFigures
from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
from bigcrawl.scheduler.partition.fold.budget_source import BudgetSource
from bigcrawl.scheduler.partition.fold.seen import entries_after
from bigcrawl.scheduler.partition.fold.step import StepFold
from bigcrawl.scheduler.partition.fold.step_sources import StepSources
from bigcrawl.scheduler.partition.opening import Opened, open_epoch
from bigcrawl.scheduler.partition.takeover import is_unused, verify_newest
from bigcrawl.scheduler.queues.epoch_directory import list_committed, list_epochs
from bigcrawl.scheduler.queues.looks import NOTHING_LISTED
from bigcrawl.scheduler.records.contents import RowKind, rows_in
from bigcrawl.scheduler.records.inbox_entry import InboxEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.scheduler.budgets.mirrors import MirrorChange
    from bigcrawl.scheduler.budgets.traps import TrapChange
    from bigcrawl.scheduler.partition.copies import PartitionCopy
    from bigcrawl.scheduler.partition.fold.budget_source import Budgets, PldKeyOf, PldOf, Withholds
    from bigcrawl.scheduler.partition.fold.step import PartitionState
    from bigcrawl.scheduler.queues.looks import Modified
    from bigcrawl.scheduler.queues.prioritizers import Prioritizing

__all__ = ["AdmitBatch", "Partition", "PartitionLimits", "Step"]

ADMIT_URLS_MAX = 1_000  # in a batch: one admission blocks Redis about 3 us a URL


class Step(NamedTuple):
    """What a committed step did.

    Attributes:
        batch: the URLs to admit into Redis now; None if there were none, or no room.
        new: how many URLs were queued.
        duplicates: how many URLs had been seen before.
        rejected: how many inbox entries could not be decoded and were set aside.
        trap_changes: PLDs that were caught as traps, or freed.
        mirror_changes: PLDs that were found to be mirrors, or none any longer.
        told: rows about what PLDs have in common, for the inboxes of other partitions. Those that are lost are missed,
            and nothing else.
    """

    batch: AdmitBatch | None
    new: int
    duplicates: int
    rejected: int
    trap_changes: tuple[TrapChange, ...] = ()
    mirror_changes: tuple[MirrorChange, ...] = ()
    told: tuple[tuple[RowKind, Sequence[tuple[int, ...]]], ...] = ()


class Partition(PartitionFigures):
    """One partition, opened in one epoch by its owner. `PartitionFigures` has the read-only properties.

    Guarantees:
        A URL in a folded inbox entry is admitted in exactly one batch, across epochs. The caller must admit each
        committed batch (`pending_batches`), and not offer folded entries again. URLs of one host and
        priority level are admitted in the order of their arrival, except those that the blacklist withheld, and until
        scores change.

    Memory is bounded by the inbox of a step, one decoded block a level, and the number of hosts with parked URLs.
    """

    def __init__(self, opened: Opened, limits: PartitionLimits, source: BudgetSource) -> None:
        """Begin with what was opened."""
        self._directory = opened.directory
        self._kept = CommittedFiles(opened.directory, opened.own, opened.log, opened.manifest)
        self._state = opened.state
        self.set_aside = opened.set_aside
        """How many inbox entries were below `rejected/` when a step last looked."""
        self._limits = limits
        self._sources = StepSources(source)
        self._modified: Modified = NOTHING_LISTED
        self._told = 0  # bytes of the manifest's `untold` that were sent
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
    ) -> Partition:
        """Open a partition in a new epoch, taking over what the newest manifest describes.

        Args:
            directory: the directory of the partition, ``<state>/p<id>``. It is made if it is missing.
            epoch: a number above `last_epoch`. Each is used once.
            limits: the bounds of the hot set.
            files: the file system; the real one by default.
            fall_back: if the newest manifest is damaged or names lost bytes, as after a power cut, go back to the last
                sound or durable one. What Redis has admitted since must then be folded (`fold_admitted`).
            budgets: how many URLs of a PLD pass in a turn; None for no limit. See `set_budgets`.
            pld_of: a host's PLD; by default each host is its own.
            pld_key: the key of a PLD; by default that of a crawl without a secret.

        Raises:
            OwnershipLostError: the epoch, or a later one, was opened before.
            CorruptionError: the manifest or a file that it names is damaged. The partition never starts from empty.
            TransientStoreError: the disk failed or is full. The call may be repeated with the same epoch.
        """
        files = files or DiskFiles()
        opened = open_epoch(directory, epoch, files, priority_bias=limits.priority_bias, fall_back=fall_back)
        return cls(opened, limits, BudgetSource(budgets, pld_of, pld_key))

    @staticmethod
    def exists(directory: Path, files: Files | None = None) -> bool:
        """Return whether any epoch of the partition has a manifest, readable or not."""
        with store_errors(directory):
            return bool(list_committed(directory, files or DiskFiles()))

    @staticmethod
    def is_unused(directory: Path, files: Files | None = None) -> bool:
        """Return whether nothing is lost if Redis forgets the partition. Raises what `open` raises."""
        with store_errors(directory):
            return is_unused(directory, files or DiskFiles())

    @staticmethod
    def last_epoch(directory: Path, files: Files | None = None) -> int:
        """Return the highest epoch that was begun and not removed, or 0."""
        with store_errors(directory):
            epochs = list_epochs(directory, files or DiskFiles())
        return epochs[0] if epochs else 0

    @staticmethod
    def verify(directory: Path, files: Files | None = None) -> list[CorruptionError]:
        """Read every byte the newest manifest refers to and return what is damaged."""
        return verify_newest(directory, files or DiskFiles())

    # --- steps

    def set_host_share(self, urls: int) -> None:
        """Set how many URLs of a host may be hot before other hosts get theirs, from the next step on."""
        if urls != self._limits.low:
            self._limits = replace(self._limits, host_hot_low=urls)

    def set_budgets(self, budgets: Budgets | None) -> None:
        """Use these budgets from the next step on. None means no limit.

        A new object makes the next step check all URLs again that had no budget. So pass one only if budgets differ.
        """
        self._sources.set_budgets(budgets)

    def set_prioritizing(self, prioritizing: Prioritizing | None, *, counts_links: bool) -> None:
        """Let this give new URLs their priorities from the next step on, and count links between PLDs if it asks.

        URLs that wait in turns get theirs again if its generation is another than the last one, or none was set before.
        """
        self._sources.set_prioritizing(prioritizing, counts_links=counts_links)

    def set_withholds(self, withholds: Withholds | None) -> None:
        """Use this function to find blacklisted URLs from the next step on. A new function also checks queued URLs."""
        self._sources.set_withholds(withholds)

    def set_modified(self, modified: Modified) -> None:
        """Use this in all later steps to find pages that change before they are due. Others may write to it."""
        self._modified = modified

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
            inbox: entries in stream order, or pairs (id, batch). Those up to `inbox_id` are skipped. Without budgets,
                edges are ignored, unless the prioritizer asks for in-degrees.
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
            fresh = entries_after([e if isinstance(e, InboxEntry) else InboxEntry(*e) for e in inbox], self.inbox_id)
            work = self._state.fork()
            source = self._sources.begin(work.turns, self.admitted)
            fold = StepFold(work, self._kept.own.set_aside, self._limits.mirrors)
            fold.read(fresh, source, now_s, self._modified)
            chosen = fold.choose(source, room, hot, self._limits, away, extra_room)
            batch = AdmitBatch(self.batch_number + 1, self.admitted, chosen) if chosen else None
            found = (RowKind.COUNTED, fold.counted), (RowKind.SHARED, fold.shared)
            told = tuple((kind, rows) for kind, rows in found if rows)
            changes = fold.trap_changes, fold.mirror_changes
            step = Step(batch, len(fold.new), fold.duplicates, fold.rejected, *changes, told)
            if has_changed := bool(fresh) or work.differs(self._state):
                self._commit_step(step, work, fresh[-1][0] if fresh else self.inbox_id, fold)
            self._folded_contents += sum(rows_in(entry.contents) for entry in fresh)
            self._sources.end(is_committed=has_changed)
            if self.set_aside or step.rejected:
                self.set_aside = self._kept.own.count_set_aside()
            return step

    def _commit_step(self, step: Step, work: PartitionState, inbox_id: str, fold: StepFold) -> None:
        work.flush()
        before, batch = self._kept.manifest, step.batch
        after = replace(
            before,
            inbox_id=inbox_id,
            tables=work.tables.states(),
            queues=work.turns.queue_states(),
            turns=work.turns.state,
            in_degrees=before.in_degrees if work.in_degrees is self._state.in_degrees else work.in_degrees.to_bytes(),
            credits=work.turns.front.selector.credits,
            parked=work.parked.state(),
            batch_number=before.batch_number + bool(batch),
            admitted=before.admitted + (len(batch.urls) if batch else 0),
            already=tuple(work.already.items()),
            folded_urls=before.folded_urls + step.new + step.duplicates,
            duplicates=before.duplicates + step.duplicates,
            rejected=before.rejected + step.rejected,
            exact_copies=before.exact_copies + fold.copies.exact,
            near_copies=before.near_copies + fold.copies.near,
            mirrors=before.mirrors + fold.mirrors,
            untold=self.untold + fold.found,
        )
        self._kept.commit(after, batch)
        self._state = work
        self._told = 0

    @property
    def folded_ever(self) -> int:
        """How many URLs were ever read from the inbox; rows about contents count by their bytes."""
        return self._kept.manifest.folded_urls + self._folded_contents

    # --- what other partitions are told

    @property
    def untold(self) -> bytes:
        """Rows for the partitions of contents, see `records.contents`. They may have been sent by an owner before."""
        return self._kept.manifest.untold[self._told :]

    def note_told(self, rows: bytes) -> None:
        """These first bytes of `untold` were sent. The next step's manifest forgets them."""
        assert self.untold.startswith(rows), "what was sent waited first"
        self._told += len(rows)

    # --- admit batches

    def pending_batches(self, above: int) -> Iterator[AdmitBatch]:
        """Return the committed batches above the last one that Redis knows, in order.

        The text of an old batch is dropped, and later its keys. See `AdmitBatch.has_text`.

        Raises:
            CorruptionError: one of them is damaged.
        """
        return self._kept.batches(above)

    def forget_batches(self, upto: int) -> None:
        """Let later manifests drop the batches up to a number, because Redis has persisted them."""
        self._kept.forget_batches(upto)

    def forget_text(self, upto: int) -> None:
        """Let later logs keep only the keys of batches up to a number."""
        self._kept.forget_text(upto)

    def fold_admitted(self, batches: Mapping[int, Sequence[int]], upto: int = 0) -> None:
        """Count as admitted what Redis has admitted beyond this manifest, and commit that.

        Admission skips each of the keys once when it next meets the URL, whether that waits on disk already or is still
        in the inbox.

        Args:
            batches: the keys of the batches that Redis has, by number. Those up to `batch_number` are ignored.
            upto: the last batch that Redis admitted; by default the last of `batches`. URLs of a missing batch are
                admitted again, with new sequence numbers.
        """
        last = max((upto, *batches))
        if last <= self.batch_number:
            return
        beyond = range(self.batch_number + 1, last + 1)
        keys = [key for number in beyond for key in batches.get(number, ())]
        missing = sum(number not in batches for number in beyond)
        work = self._state.skipping(keys)
        with store_errors(self._directory):
            self._kept.commit(
                replace(
                    self._kept.manifest,
                    batch_number=last,
                    admitted=self.admitted + len(keys) + missing * ADMIT_URLS_MAX,
                    already=tuple(work.already.items()),
                )
            )
        self._state = work

    # --- durability

    def make_durable(self) -> None:
        """Sync the committed state, then delete files that it no longer needs.

        Raises:
            TransientStoreError: the disk failed. What was durable still is, and the call may be repeated.
            CorruptionError: a retained admit batch is damaged.
        """
        self._kept.make_durable()

    # --- copies

    def lend_copy(self) -> PartitionCopy:
        """Return what a copy of the committed state consists of. Its files stay until `end_copy`.

        Raises:
            TransientStoreError: the disk failed.
        """
        return self._kept.lend_copy()

    def end_copy(self) -> None:
        """The files of the last copy need not stay any longer."""
        self._kept.end_copy()

    # --- checking

    def _check(self) -> None:
        manifest = self._kept.manifest
        self._state._check()
        self._kept._check()
        assert manifest.tables == self._state.tables.states(), "the manifest lists the keys"
        assert manifest.queues == self._state.turns.queue_states(), "the manifest describes the queues"
        assert manifest.turns == self._state.turns.state, "and where the turns stand"
        assert manifest.parked == self._state.parked.state(), "the manifest describes the parked queues"
