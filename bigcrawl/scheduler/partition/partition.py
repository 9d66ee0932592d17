"""One partition's state on disk: a fold over its inbox (steps 4 to 7). The manifest is the commit.

Rules for this file: no Redis, no clock, no asyncio; one caller's thread. A step works on a fork of the
state, writes what nothing refers to yet, and then appends a record to the manifest that refers to it.
Whatever fails before that leaves disk and memory as they were; the same step may be repeated.

    step          inbox -> a fold on copies (`partition.step`) -> record appended to MANIFEST    no fsync
    make_durable  fsync all that MANIFEST names, MANIFEST, the directory; then delete what it does not name
    open          newest manifest of any epoch -> links in e<epoch>/ -> MANIFEST there

What a crash leaves: files in e<epoch>/ that no manifest names, bytes behind a segment's committed length or
behind the manifest's last whole record, a directory without a manifest. None of them is ever read. An admit
batch is part of the step's record; one that was committed and not told is in `pending_batches`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeCounts
from bigcrawl.scheduler.budgets.traps import Traps
from bigcrawl.scheduler.partition.admission import PartitionLimits
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch, decode_admit_batch, encode_admit_batch
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID, BatchPlace, Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog, decode_manifest
from bigcrawl.scheduler.partition.seen import entries_after
from bigcrawl.scheduler.partition.step import Fold, State
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.partition.takeover import begin_epoch, is_unused, remove_older_epochs, take_over, verify_newest
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, list_committed, list_epochs, remove_epoch
from bigcrawl.scheduler.queues.front_queues import LEVELS, Selector
from bigcrawl.scheduler.queues.parked_queues import ParkedQueues
from bigcrawl.scheduler.queues.turns import Turns
from bigcrawl.scheduler.records.inbox_entry import InboxEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.scheduler.budgets.traps import Turned
    from bigcrawl.scheduler.partition.budgeting import Budgets, PldKeyOf, PldOf, Withholds
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.turns import TurnState

__all__ = ["AdmitBatch", "Partition", "PartitionLimits", "Step"]

ADMIT_URLS_MAX = 1_000  # in a batch: one admission blocks Redis about 3 us a URL


class Step(NamedTuple):
    """What a step did; it is committed.

    Attributes:
        batch: URLs to admit into Redis now; None when there were none, or no room.
        new: URLs that were queued.
        duplicates: URLs that had been seen before.
        rejected: batches that could not be decoded and were set aside.
        turned: PLDs that are taken for traps from now on, or not any more.
    """

    batch: AdmitBatch | None
    new: int
    duplicates: int
    rejected: int
    turned: tuple[Turned, ...] = ()


class Partition:
    """One partition, opened in one epoch by its owner.

    Guarantees:
        A URL in a folded inbox entry is admitted in exactly one batch number, in whichever epoch, if each
        committed batch is admitted (`pending_batches`) and nothing folded is offered again. URLs of one
        host and priority level are admitted in the order they arrived, but for those that the blacklist withheld.

    Memory is bounded by a step's inbox, one decoded block a level, and the hosts over their room.
    """

    def __init__(
        self,
        directory: Path,
        own: EpochDirectory,
        log: ManifestLog,
        manifest: Manifest,
        limits: PartitionLimits,
        budgets: Budgets | None,
        pld_of: PldOf | None,
        pld_key: PldKeyOf | None,
    ) -> None:
        self._directory = directory
        self._own = own
        self._log = log
        self._files = own.files
        self._limits = limits
        self._manifest = manifest
        self._durable: Manifest | None = None
        self._budgets = budgets
        self._pld_of = pld_of
        self._pld_key = pld_key
        # What the last step asked for budgets; nothing is asked before the first.
        self.withholds: Withholds | None = None  # of what is blacklisted; another object asks the queues again
        self._asked_withholds: Withholds | None = None
        self._asked: object = self
        self._state = State(
            Tables.restore(own, manifest.tables),
            Turns.restore(own, manifest.queues, manifest.turns, Selector(manifest.credits, limits.priority_bias)),
            ParkedQueues.restore(own, manifest.parked),
            Counter(dict(manifest.already)),
            InDegreeCounts.from_bytes(manifest.in_degrees) if manifest.in_degrees else EMPTY_COUNTS,
        )
        self._forgotten = 0
        self._without_text_upto = 0
        self.set_aside = own.count_set_aside()
        """Inbox entries below `rejected/`, when a step last looked."""
        self._older_removed = False

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
            directory: the partition's own, ``<state>/p<id>``; made if need be.
            epoch: above `last_epoch`; each is used once.
            limits: what bounds the hot set.
            files: the file system; the real one by default.
            fall_back: where the newest manifest is damaged or names lost bytes, go back to the last
                sound or durable one, as after a power cut; Redis' own batches are then folded
                (`fold_admitted`).
            budgets: how many URLs of a PLD pass in a turn; None: as many as there are. See `budgets`.
            pld_of: a host's PLD; by default each host is its own.
            pld_key: the key of a PLD; by default that of a crawl without a secret.

        Raises:
            OwnershipLostError: somebody has opened the epoch, or a later one.
            CorruptionError: the manifest or a file it names is damaged; never a restart from empty.
            TransientStoreError: the disk failed or is full; may be repeated with the same epoch.
        """
        files = files or DiskFiles()
        with store_errors(directory):
            own = begin_epoch(directory, epoch, files)
            try:
                inherited = take_over(directory, own, fall_back=fall_back)
                manifest, batches = inherited or (Manifest(epoch), [])
                manifest = replace(manifest, epoch=epoch, number=manifest.number + 1, durable=0)
                log = ManifestLog(own.path, own.files)
                return cls(directory, own, log, log.begin(manifest, batches), limits, budgets, pld_of, pld_key)
            except (OSError, BigcrawlError):
                with suppress(OSError):  # else a later owner removes it
                    remove_epoch(own.path, files)
                raise

    @staticmethod
    def exists(directory: Path, files: Files | None = None) -> bool:
        """Return whether any epoch of the partition has a manifest, readable or not."""
        with store_errors(directory):
            return bool(list_committed(directory, files or DiskFiles()))

    @staticmethod
    def is_unused(directory: Path, files: Files | None = None) -> bool:
        """Return whether nothing is lost if Redis forgets the partition; raises as `open`."""
        with store_errors(directory):
            return is_unused(directory, files or DiskFiles())

    @staticmethod
    def last_epoch(directory: Path, files: Files | None = None) -> int:
        """Return the highest epoch that was ever begun and not removed; 0 when there is none."""
        with store_errors(directory):
            epochs = list_epochs(directory, files or DiskFiles())
        return epochs[0] if epochs else 0

    def __repr__(self) -> str:
        return (
            f"<Partition {self._directory.name} epoch={self._own.epoch} manifest={self.manifest_number} "
            f"seen={self.seen} waiting={self.waiting} batch={self.batch_number}>"
        )

    # What the manifest says.

    @property
    def epoch(self) -> int:
        """The epoch it was opened in."""
        return self._own.epoch

    @property
    def inbox_id(self) -> str:
        """The last inbox entry that was folded."""
        return self._manifest.inbox_id

    @property
    def batch_number(self) -> int:
        """The last committed admit batch; 0 before the first."""
        return self._manifest.batch_number

    @property
    def admitted(self) -> int:
        """URLs ever admitted, which is the sequence number the next one gets."""
        return self._manifest.admitted

    @property
    def manifest_number(self) -> int:
        """The number of the committed manifest."""
        return self._manifest.number

    @property
    def seen(self) -> int:
        """Distinct keys ever folded."""
        return len(self._state.tables.seen)

    @property
    def waiting(self) -> int:
        """URLs queued and not admitted: in turns, over budget, and parked."""
        return len(self._state)

    @property
    def waiting_by_level(self) -> tuple[int, ...]:
        """URLs in each front queue, lowest level first; ordinary and extra ones together."""
        counts = self._state.turns.front.counts()
        return tuple(sum(counts[level::LEVELS]) for level in range(LEVELS))

    @property
    def has_only_extra(self) -> bool:
        """Whether all in the front queues is beyond its PLD's budget in this turn; not when they are empty."""
        return self._state.turns.front.has_only_extra

    @property
    def turn(self) -> TurnState:
        """Where the turns stand."""
        return self._state.turns.state

    @property
    def waiting_by_turn(self) -> dict[int, int]:
        """URLs in the current turn, which are those in the front queues, and in each later one that has any."""
        return self._state.turns.by_turn

    @property
    def over_budget(self) -> int:
        """URLs for which no turn of the window has room."""
        return len(self._state.turns.over)

    @property
    def is_withheld(self) -> bool:
        """Whether all that waits is over budget, and stays so until there are other budgets."""
        return bool(self.over_budget) and self.withheld() == self.waiting

    def withheld(self, retired: Iterable[str] = ()) -> int:
        """URLs that stay on disk until there are other budgets, or until one of the retired hosts comes back.

        Those over budget are among them when they are all else that waits, and a re-read has passed none.
        """
        parked = sum(map(self._state.parked.urls_of, retired))
        is_vain = self.waiting == parked + self.over_budget and self.turn.is_resting
        return parked + (self.over_budget if is_vain else 0)

    @property
    def parked(self) -> int:
        """URLs parked behind a full host."""
        return len(self._state.parked)

    @property
    def parked_hosts(self) -> int:
        """Hosts with parked URLs."""
        return self._state.parked.host_count

    @property
    def in_degree_counts(self) -> InDegreeCounts:
        """How many PLDs of the partition have which in-degree."""
        return self._state.in_degrees

    def ends(self, keys: KeyArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Return which URLs have ended, given their keys, and how: values of `outcomes.VALUE`.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self._state.tables.ends.values(keys)

    def in_degrees(self, plds: KeyArray) -> npt.NDArray[np.uint32]:
        """Return the in-degree of each PLD, given its key; 0 for one that is not known to be linked to.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self._state.tables.plds.values(plds)[1]["in_degree"]

    def trap_divisors(self, plds: KeyArray) -> npt.NDArray[np.uint32] | None:
        """Return what the budgets of PLDs, given their keys, are divided by; None when none is taken for a trap.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return Traps(self._state.tables.traps, self._limits.traps).divisors(plds)

    @property
    def folded_urls(self) -> int:
        """URLs ever read from the inbox."""
        return self._manifest.folded_urls

    @property
    def duplicates(self) -> int:
        """URLs ever dropped because they had been seen."""
        return self._manifest.duplicates

    @property
    def rejected(self) -> int:
        """Inbox entries ever set aside because they could not be decoded."""
        return self._manifest.rejected

    @property
    def durable_inbox_id(self) -> str:
        """The last entry folded by a manifest this owner made durable: the inbox may be trimmed to it."""
        return self._durable.inbox_id if self._durable else NO_INBOX_ID

    @property
    def durable_batch_number(self) -> int:
        """The last admit batch of a manifest this owner made durable."""
        return self._durable.batch_number if self._durable else 0

    @property
    def has_undurable_changes(self) -> bool:
        """Whether `make_durable` has anything to do."""
        return self._durable is not self._manifest

    # Folding.

    @property
    def host_share(self) -> int:
        """How many URLs of a host are hot before other hosts have theirs, from the next step on."""
        return self._limits.low

    @host_share.setter
    def host_share(self, urls: int) -> None:
        if urls != self._limits.low:
            self._limits = replace(self._limits, host_hot_low=urls)

    @property
    def budgets(self) -> Budgets | None:
        """What is asked for budgets, from the next step on; None: as many URLs of each PLD as there are.

        Set it to another object only when that gives other budgets: URLs that had none are then read again.
        """
        return self._budgets

    @budgets.setter
    def budgets(self, budgets: Budgets | None) -> None:
        self._budgets = budgets

    def step(
        self,
        inbox: Sequence[InboxEntry | tuple[str, bytes]],
        room: int,
        hot: Mapping[str, int],
        away: Mapping[str, int] | None = None,
        extra_room: int | None = None,
    ) -> Step:
        """Fold inbox entries, choose what to admit, commit.

        Args:
            inbox: entries in stream order, or pairs (id, batch); those up to `inbox_id` are skipped. Edges are
                passed over while there are no budgets.
            room: URLs that may be admitted.
            hot: URLs of each host that are hot in Redis, taken ones included.
            away: hosts of which no more than so many URLs may be hot, whatever the room: they are snoozed or retired.
            extra_room: URLs beyond their PLD's budget in their turn are taken while fewer than so many are; None: room.

        Raises:
            TransientStoreError: the disk failed or is full; nothing has changed, repeat it later.
            CorruptionError: a file is damaged; nothing has changed.
        """
        with store_errors(self._directory):
            fresh = entries_after([e if isinstance(e, InboxEntry) else InboxEntry(*e) for e in inbox], self.inbox_id)
            work, budgets = self._state.fork(), self._budgets
            if budgets is not self._asked or self.withholds is not self._asked_withholds:
                work.turns.wake()
            fold = Fold(work, self._own.set_aside)
            fold.forget(fresh)
            fold.note_outcomes(fresh)
            if budgets is not None:
                fold.read_edges(fresh)
            fold.check_urls(fresh)
            whose = (self._pld_of, self._pld_key)
            chosen = fold.choose(budgets, *whose, room, hot, self._limits, away, self.withholds, extra_room)
            batch = AdmitBatch(self.batch_number + 1, self.admitted, chosen) if chosen else None
            step = Step(batch, len(fold.new), fold.duplicates, fold.rejected, fold.turned)
            if fresh or work.differs(self._state):
                self._commit_step(step, work, fresh[-1][0] if fresh else self.inbox_id)
            self._asked, self._asked_withholds = budgets, self.withholds
            if self.set_aside or step.rejected:
                self.set_aside = self._own.count_set_aside()
            return step

    def _commit_step(self, step: Step, work: State, inbox_id: str) -> None:
        work.flush()
        before = self._manifest
        batch = step.batch
        self._commit(
            replace(
                before,
                inbox_id=inbox_id,
                tables=work.tables.states(),
                queues=work.turns.queue_states(),
                turns=work.turns.state,
                in_degrees=before.in_degrees
                if work.in_degrees is self._state.in_degrees
                else work.in_degrees.to_bytes(),
                credits=work.turns.front.selector.credits,
                parked=work.parked.state(),
                batch_number=before.batch_number + bool(batch),
                admitted=before.admitted + (len(batch.urls) if batch else 0),
                retained=self._still_retained(),
                already=tuple(work.already.items()),
                folded_urls=before.folded_urls + step.new + step.duplicates,
                duplicates=before.duplicates + step.duplicates,
                rejected=before.rejected + step.rejected,
            ),
            encode_admit_batch(batch) if batch else b"",
        )
        self._state = work

    def _still_retained(self) -> tuple[BatchPlace, ...]:
        places = self._manifest.retained
        if not places or places[0].number > self._forgotten:
            return places
        return tuple(place for place in places if place.number > self._forgotten)

    def _commit(self, manifest: Manifest, batch: bytes = b"") -> None:
        """Append a manifest, which gets the next number, and the batch it brings."""
        number, durable = self._manifest.number + 1, self._durable.number if self._durable else 0
        self._manifest = self._log.append(replace(manifest, number=number, durable=durable), batch)

    # Admit batches.

    def pending_batches(self, above: int) -> Iterator[AdmitBatch]:
        """Yield the committed batches with a number above the last one Redis knows, in order.

        One that Redis had for so long that its text was dropped has its keys alone, or not even those: see
        `AdmitBatch.has_text`.

        Raises:
            CorruptionError: one of them is damaged.
        """
        for number in range(above + 1, self.batch_number + 1):
            # Places are those of the log as it is when the batch is asked for.
            place = next((place for place in self._manifest.retained if place.number == number), None)
            if place is None:
                yield AdmitBatch(number, 0, [])
                continue
            _, offset, length = place
            with store_errors(self._directory):
                data = self._own.read(MANIFEST, offset, length)
            yield decode_admit_batch(self._own.place(MANIFEST), data, offset)

    def forget_batches(self, upto: int) -> None:
        """Let later manifests drop the batches up to a number: Redis has persisted them."""
        self._forgotten = max(self._forgotten, min(upto, self.batch_number))

    def forget_text(self, upto: int) -> None:
        """Let later logs keep of the batches up to a number the keys alone."""
        self._without_text_upto = max(self._without_text_upto, upto)

    def fold_admitted(self, batches: Mapping[int, Sequence[int]], upto: int = 0) -> None:
        """Take as admitted what Redis admitted beyond this manifest; committed at once.

        Each of the keys is skipped once when its URL is next met at admission, whether it waits already
        or is still in the inbox.

        Args:
            batches: the keys of the batches that Redis has, by number; those up to `batch_number` are ignored.
            upto: the last batch that Redis admitted; by default the last of those. What was in one that is missing
                is admitted again, and given other sequence numbers.
        """
        last = max((upto, *batches))
        if last <= self.batch_number:
            return
        beyond = range(self.batch_number + 1, last + 1)
        keys = [key for number in beyond for key in batches.get(number, ())]
        missing = sum(number not in batches for number in beyond)
        already = self._state.already + Counter(keys)
        with store_errors(self._directory):
            self._commit(
                replace(
                    self._manifest,
                    batch_number=last,
                    admitted=self.admitted + len(keys) + missing * ADMIT_URLS_MAX,
                    already=tuple(already.items()),
                )
            )
        self._state.already = already

    # Durability.

    def make_durable(self) -> None:
        """Sync the committed state, then delete what it no longer needs.

        Raises:
            TransientStoreError: the disk failed; what was durable still is, and it may be repeated.
            CorruptionError: a retained admit batch is damaged.
        """
        if not self.has_undurable_changes:
            return
        with store_errors(self._directory):
            needed = self._manifest.files_needed()
            self._own.sync_files(needed)
            if self._log.has_grown:
                self._own.note_renamed()
                self._manifest = self._log.begin_anew(self._without_text_upto)
            else:
                self._log.sync()
            self._own.sync_names()
            self._durable = self._manifest
            self._own.remove_all_but(needed)
            if not self._older_removed:
                remove_older_epochs(self._own)
                self._older_removed = True

    # Checking.

    def _check(self) -> None:
        manifest = self._manifest
        self._state._check()
        numbers = [place.number for place in manifest.retained]
        assert numbers == sorted(set(numbers)), "batches are numbered once"
        assert all(number <= self.batch_number for number in numbers), "none is ahead"
        assert manifest.tables == self._state.tables.states(), "the manifest lists the keys"
        assert manifest.queues == self._state.turns.queue_states(), "the manifest describes the queues"
        assert manifest.turns == self._state.turns.state, "and where the turns stand"
        assert manifest.parked == self._state.parked.state(), "the manifest describes the parked queues"
        for name, length in manifest.files_needed().items():
            assert self._files.size(self._own.place(name)) >= length, f"{name} holds what is committed"
        committed = decode_manifest(self._own.place(MANIFEST), self._own.read(MANIFEST, 0, self._log.size))
        assert committed == manifest, "what is on disk is what is in memory"
        assert list(committed.parked.chains) == list(manifest.parked.chains), "and hosts have the same turns"

    @staticmethod
    def verify(directory: Path, files: Files | None = None) -> list[CorruptionError]:
        """Read every byte the newest manifest refers to and return what is damaged."""
        return verify_newest(directory, files or DiskFiles())
