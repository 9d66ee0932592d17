"""DRUM: a disk repository with update management, complete and on its own (IRLbot §4.3, Figure 1).

<key, value, aux> tuples come in, to be checked, updated, or both. They gather in memory and on disk; a merge
answers all of them in one pass through the buckets' runs, makes what it found durable, and tells a receiver.

What a tuple goes through, and what a crash does to it:

    state      where                                   becomes so by                      after a crash
    gathered   arrays in memory, aux-<n> on disk       an offer                           it never came
    flushed    keys-<n>, aux-<n>                       a record appended to MANIFEST      it is flushed
    answered   also answers-<n>, and in the runs       a MANIFEST renamed into place      it is told again
    told       in the runs                             a record appended to MANIFEST      it is told

    MANIFEST       the truth: what is committed (`bigcrawl.drum.drum_manifest`)
    keys-<n>, aux-<n>, answers-<n>     spill n (`intake`, `sections`, `aux_file`, `answers`)
    b<hex>/run-<n>                     runs of a bucket (`bigcrawl.drum.bucket`)

A file that the manifest does not name is what a crash left; opening removes it. One process at a time owns the
directory; no lock is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from bigcrawl.drum.answers import tell_spill
from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE, Kind
from bigcrawl.drum.drum_manifest import read_log
from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.drum.intake import Intake, Layout
from bigcrawl.drum.merge import merge_spills
from bigcrawl.drum.offers import columns_of
from bigcrawl.drum.repository import Repository
from bigcrawl.exceptions import ConfigError, ContractError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

    from bigcrawl.drum.answers import Answer
    from bigcrawl.drum.aux_file import Aux
    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.intake import Spill

MEMORY_BYTES: Final = 96 << 20
DISK_BYTES: Final = 16 << 30
BUCKETS: Final = 256

# A merge holds, for each tuple of the bucket it is at: key, sorted key, two places, masks and a copy in passing.
_MERGED_TUPLE_BYTES = 64

# A merge reads a slice of every spill for every bucket. So many, if they are small as flushes make them, are merged.
_SPILLS_MAX = 512
_SLICE_BYTES = 4096

_BUCKETS_MAX = 1 << 13


class Drum:
    """A set, or a map to values of fixed width, of 64-bit keys on disk, asked in batches.

    Guarantees:
        Answers are as if the tuples were handled one by one in the order they were offered, and are told in
        that order, each when it is durable: run, answers and aux synced, and named by a manifest. A receiver
        that returns has acknowledged; after a crash, or an error of its own, it is told again what it has
        not, with the same ordinals. What `flush` has acknowledged is not lost.

    Args:
        directory: this DRUM's own; made if it is not there.
        receiver: called with one `Answer` after another, during `merge`, `tell` and offers.
        kind: what a key has; must be as it was when the directory was made.
        buckets: a power of two up to 8,192; must be as it was. A merge takes one bucket's tuples into memory.
        memory_bytes: about what it holds at most, beyond batches offered and answers told: a third for what
            gathers, a third for a merge.
        disk_bytes: how much keys and aux may take before they are merged.
        files: the file system.

    Raises:
        ConfigError: another kind or number of buckets than the directory has.
        CorruptionError: the manifest is damaged.
        TransientStoreError: the disk failed.

    Cost: a URL of 75 bytes is written and read once at a third of that, and its key twice; the runs are read
    once a merge, so that large sets want large merges: with the default memory and 256 buckets, of 10^8 tuples.
    """

    def __init__(
        self,
        directory: Path,
        receiver: Callable[[Answer], None],
        *,
        kind: Kind = Kind("run"),  # noqa: B008
        buckets: int = BUCKETS,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        files: Files | None = None,
    ) -> None:
        if not 1 <= buckets <= _BUCKETS_MAX or buckets & (buckets - 1):
            raise ConfigError(f"buckets is {buckets}; must be a power of two up to {_BUCKETS_MAX}, e.g. {BUCKETS}")
        layout = Layout(buckets, kind.value)
        self._receiver = receiver
        self._repository = Repository(directory, DiskFiles() if files is None else files, layout, kind)
        self._disk_bytes = disk_bytes
        self._bucket_tuples_max = max(1, memory_bytes // 3 // (_MERGED_TUPLE_BYTES + 4 * layout.value_bytes))
        self._counts = np.zeros(buckets, dtype=np.int64)
        # Spills that the manifest does not name yet, and told ones whose files are still there.
        self._loose: list[Spill] = []
        self._done: list[Spill] = []
        with store_errors(directory):
            self._state, self._log = self._repository.open()
            self._count_flushed()
        self._buckets = [self._repository.bucket(number, state) for number, state in enumerate(self._state.buckets)]
        next_number = 1 + max((spill.number for spill in self._state.spills), default=0)
        self._intake = Intake(directory, self._repository.files, layout, memory_bytes // 3, next_number)
        self._is_open = True

    def __len__(self) -> int:
        """How many keys are in the runs; what has not been merged is not counted."""
        return sum(len(bucket) for bucket in self._buckets)

    def __repr__(self) -> str:
        return (
            f"<Drum {self._repository.directory.name} keys={len(self)} gathered={len(self._intake)} "
            f"spills={len(self._state.spills)} told={self._state.told}>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()

    @property
    def batch_max(self) -> int:
        """The most tuples that one offer may have."""
        return self._intake.tuples_max

    @property
    def waiting(self) -> int:
        """How many tuples have no answer yet."""
        return (self._loose[-1].end if self._loose else self._state.end) - self._state.answered + len(self._intake)

    def check(self, keys: KeyArray, aux: Sequence[str] | Sequence[bytes] | Aux | None = None) -> None:
        """Ask whether keys are there, and for their values; as `offer`."""
        self.offer(keys, CHECK, None, aux)

    def update(self, keys: KeyArray, values: ValueArray | None = None) -> None:
        """Put keys in, with values in place of those they have, or added to them; as `offer`, without aux."""
        self.offer(keys, UPDATE, values)

    def check_update(
        self,
        keys: KeyArray,
        values: ValueArray | None = None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None = None,
    ) -> None:
        """Ask whether keys are there, and put them in; as `offer`."""
        self.offer(keys, CHECK_UPDATE, values, aux)

    def offer(
        self,
        keys: KeyArray,
        ops: int | OpArray,
        values: ValueArray | None = None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None = None,
    ) -> None:
        """Take a batch in, after a spill or a merge where its room was taken.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed, 0 <= n <= `batch_max`.
            ops: one operation, or uint8 of shape (n,).
            values: of the kind's dtype, shape (n,), for keys that are updated; None: zeros, or a set.
            aux: n strings, told with the answers; None: empty ones.

        Raises:
            ContractError: columns of different length, too many tuples, or a closed DRUM.
            TransientStoreError: the disk failed or is full; the batch was not taken, offer it again.
            CorruptionError: a merge found damage; the batch was not taken.
        """
        self._require_open()
        tuples, column = columns_of(self._repository.layout, self.batch_max, keys, ops, values, aux)
        if not len(keys):
            return
        ids = self._repository.layout.buckets_of(tuples.keys)
        counts = np.bincount(ids, minlength=self._repository.layout.buckets)
        self._make_room(len(keys), counts)
        self._intake.put(tuples, ids, column)
        self._counts += counts

    def flush(self) -> None:
        """Return when everything offered is durable, so that a crash does not lose it.

        Raises:
            TransientStoreError: the disk failed or is full; repeat it.

        Cost: two files and four syncs; often called, it makes small spills.
        """
        self._require_open()
        with store_errors(self._repository.directory):
            self._spill()
            if self._loose:
                self._commit_loose()
                self._log.sync()

    def merge(self) -> None:
        """Answer everything offered so far, and tell it.

        Raises:
            TransientStoreError: the disk failed or is full; repeat it.
            CorruptionError: what is on disk is damaged.
        """
        self.tell()
        self.flush()
        if self._state.answered < self._state.end:
            with store_errors(self._repository.directory):
                self._answer()
            self.tell()

    def tell(self) -> None:
        """Tell what is answered and not acknowledged; to be called once a DRUM has been opened.

        `merge` begins with it. What the receiver raises goes through, and the same answer is told next time.
        """
        self._require_open()
        with store_errors(self._repository.directory):
            self._log.sync_name()
        while self._state.told < self._state.answered:
            spill = self._state.spills[0]
            if spill.asks:
                self._tell_spill(spill)
            else:
                self._acknowledge(spill.end)
            self._remove_done()
        self._remove_done()

    def close(self) -> None:
        """Flush; what is not merged waits for the next time."""
        if self._is_open:
            self.flush()
            self._is_open = False

    def verify(self) -> list[CorruptionError]:
        """Read every byte that the manifest counts, and return what is damaged."""
        problems: list[CorruptionError] = []
        try:
            with store_errors(self._repository.directory):
                read_log(self._repository.directory, self._repository.files)
        except CorruptionError as error:
            problems.append(error)
        for spill in self._state.spills:
            problems += self._repository.verify_spill(spill, self._state.answered)
        for bucket in self._buckets:
            problems += bucket.verify()
        return problems

    def _check(self) -> None:
        self._state._check()
        for bucket, state in zip(self._buckets, self._state.buckets, strict=True):
            assert bucket.state == state, "a bucket is as the manifest says"
            bucket._check()
        assert int(self._counts.sum()) == self.waiting, "each bucket knows what waits for it"

    def _require_open(self) -> None:
        if not self._is_open:
            raise ContractError(f"{self._repository.directory}: this DRUM is closed; open another on the directory")

    def _make_room(self, count: int, counts: npt.NDArray[np.int64]) -> None:
        """Spill or merge if the batch does not fit; it does then."""
        with store_errors(self._repository.directory):
            self._intake.write_aux()
            if not self._intake.has_room_for(count):
                self._spill()
        is_full = (
            int((self._counts + counts).max()) > self._bucket_tuples_max
            or self._disk_used() > self._disk_bytes
            or self._is_crumbled()
        )
        if is_full and self.waiting:
            self.merge()

    def _is_crumbled(self) -> bool:
        spills = len(self._state.spills) + len(self._loose)
        slices = spills * self._repository.layout.buckets
        return spills >= _SPILLS_MAX and self.waiting * self._repository.layout.tuple_bytes < slices * _SLICE_BYTES

    def _disk_used(self) -> int:
        tuple_bytes = self._repository.layout.tuple_bytes
        spills = (*self._state.spills, *self._loose)
        return sum(spill.aux_bytes + spill.tuples * tuple_bytes for spill in spills) + self._intake.aux_bytes

    def _spill(self) -> None:
        spill = self._intake.seal(self._loose[-1].end if self._loose else self._state.end)
        if spill is not None:
            self._loose.append(spill)

    def _commit_loose(self) -> None:
        self._repository.sync_spills(self._loose)
        while self._loose:
            self._log.append_spill(self._loose[0])
            self._state = self._state.with_spill(self._loose.pop(0))

    def _answer(self) -> None:
        """Do all that makes flushed tuples answered; the rename within is what commits it."""
        spills = [spill for spill in self._state.spills if spill.first >= self._state.answered]
        merged = merge_spills(self._repository, self._buckets, spills)
        state = self._state._replace(buckets=merged.buckets, answered=self._state.end)
        self._log.begin(state)
        self._state = state
        self._buckets = [self._repository.bucket(number, bucket) for number, bucket in enumerate(state.buckets)]
        self._counts[:] = 0
        self._log.sync_name()
        self._repository.remove_runs(merged.obsolete)

    def _tell_spill(self, spill: Spill) -> None:
        repository = self._repository
        answers = tell_spill(repository.files, repository.directory, spill, repository.layout)
        while True:
            # What the receiver raises is not the disk's.
            with store_errors(repository.directory):
                answer = next(answers, None)
            if answer is None:
                return
            end = answer.first + len(answer.keys)
            if end > self._state.told:
                self._receiver(answer.from_ordinal(self._state.told))
                self._acknowledge(end)

    def _acknowledge(self, told: int) -> None:
        self._done += [spill for spill in self._state.spills if spill.end <= told]
        self._state = self._state.with_told(told)
        with store_errors(self._repository.directory):
            self._log.append_told(told)

    def _remove_done(self) -> None:
        """Delete told spills, behind a durable acknowledgement."""
        if self._done:
            with store_errors(self._repository.directory):
                self._log.append_told(self._state.told)
                self._log.sync()
            for spill in self._done:
                self._repository.remove_spill(spill)
            self._done = []

    def _count_flushed(self) -> None:
        """Learn how many tuples wait in each bucket, from what an earlier process flushed."""
        for spill in self._state.spills:
            if spill.first >= self._state.answered:
                reader = self._repository.keys_reader(spill)
                self._counts += reader.lengths // self._repository.layout.record_bytes(reader.operation)
