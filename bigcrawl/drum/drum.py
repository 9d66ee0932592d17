"""DRUM: a disk repository with update management, self-contained (IRLbot §4.3, Figure 1).

The states of a <key, value, aux> tuple:

    state      where                                   entered by                         after a crash
    buffered   arrays in memory, aux-<n> on disk       an offer                           lost
    flushed    keys-<n>, aux-<n>                       a record appended to MANIFEST      flushed
    answered   also answers-<n>, and in the runs       a MANIFEST renamed into place      delivered again
    told       in the runs                             a record appended to MANIFEST      told

One process at a time owns the directory; there is no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from bigcrawl.drum.batch_check import checked_columns
from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE, Kind
from bigcrawl.drum.committed_spills import CommittedSpills
from bigcrawl.drum.drum_manifest import read_log
from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.drum.merge import merge_spills
from bigcrawl.drum.repository import Repository
from bigcrawl.drum.spills.answers import deliver_spill
from bigcrawl.drum.spills.spill import TupleLayout
from bigcrawl.drum.spills.write_buffer import WriteBuffer
from bigcrawl.exceptions import ConfigError, ContractError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.spills.answers import Answer
    from bigcrawl.drum.spills.aux_file import Aux
    from bigcrawl.drum.spills.spill import Spill

MEMORY_BYTES: Final = 96 << 20
DISK_BYTES: Final = 16 << 30
BUCKETS: Final = 256

# A merge holds key, sorted key, two indices, masks and a temporary copy.
_MERGED_TUPLE_BYTES = 64

# Many spills with small slices for each bucket are merged early.
_SPILLS_MAX = 512
_SLICE_BYTES = 4096

_BUCKETS_MAX = 1 << 13


class Drum:
    """A set of 64-bit keys on disk, or a map from them to values of fixed width, queried in batches.

    Answers are as if the tuples were applied one by one in the order offered. They are delivered in that order, once
    they are durable. The receiver acknowledges an answer by returning. After a crash, or an exception of the receiver,
    unacknowledged answers are delivered again with the same ordinals.

    Args:
        directory: used by this DRUM alone; created if missing.
        receiver: called with each `Answer`, during `merge`, `tell` and offers.
        kind: what is stored for a key; fixed when the directory is created.
        buckets: a power of two up to 8,192; fixed likewise. A merge loads one bucket's tuples into memory.
        memory_bytes: approximate, without offered batches and delivered answers.
        disk_bytes: keys and aux of this size start a merge.

    Raises:
        ConfigError: the directory has another kind or number of buckets.
        CorruptionError: the manifest is damaged.
        TransientStoreError: the disk failed.
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
        layout = TupleLayout(buckets, kind.value)
        self._receiver = receiver
        self._repository = Repository(directory, DiskFiles() if files is None else files, layout, kind)
        self._disk_bytes = disk_bytes
        self._bucket_tuples_max = max(1, memory_bytes // 3 // (_MERGED_TUPLE_BYTES + 4 * layout.value_bytes))
        self._counts = np.zeros(buckets, dtype=np.int64)
        with store_errors(directory):
            self._spills = CommittedSpills(self._repository)
            self._count_flushed()
        state = self._spills.state
        self._buckets = [self._repository.bucket(number, bucket) for number, bucket in enumerate(state.buckets)]
        next_number = 1 + max((spill.number for spill in state.spills), default=0)
        self._write_buffer = WriteBuffer(directory, self._repository.files, layout, memory_bytes // 3, next_number)
        self._is_open = True

    def __len__(self) -> int:
        return sum(len(bucket) for bucket in self._buckets)

    def __repr__(self) -> str:
        return (
            f"<Drum {self._repository.directory.name} keys={len(self)} buffered={len(self._write_buffer)} "
            f"{self._spills!r}>"
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
        """The maximum number of tuples in an offer."""
        return self._write_buffer.tuples_max

    @property
    def waiting(self) -> int:
        return self._spills.end - self._spills.state.answered + len(self._write_buffer)

    def check(self, keys: KeyArray, aux: Sequence[str] | Sequence[bytes] | Aux | None = None) -> None:
        """Ask whether keys are present, and for their values; see `offer`."""
        self.offer(keys, CHECK, None, aux)

    def update(self, keys: KeyArray, values: ValueArray | None = None) -> None:
        """Add keys or values; see `offer`."""
        self.offer(keys, UPDATE, values)

    def check_update(
        self,
        keys: KeyArray,
        values: ValueArray | None = None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None = None,
    ) -> None:
        """Check and update; see `offer`."""
        self.offer(keys, CHECK_UPDATE, values, aux)

    def offer(
        self,
        keys: KeyArray,
        ops: int | OpArray,
        values: ValueArray | None = None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None = None,
    ) -> None:
        """Add a batch, after a spill or a merge if there is no room for it.

        Args:
            keys: uint64, shape (n,), any order, may repeat, n <= `batch_max`.
            ops: one operation for all, or uint8 of shape (n,).
            values: of the kind's dtype, shape (n,); None: zeros, or a set.
            aux: n strings, delivered with the answers; None: empty ones.

        Raises:
            ContractError: the columns do not fit together, or the DRUM is closed.
            TransientStoreError: the disk failed or is full. The batch was not accepted; offer it again.
            CorruptionError: a merge found damage. The batch was not accepted.
        """
        self._require_open()
        tuples, column = checked_columns(self._repository.layout, self.batch_max, keys, ops, values, aux)
        if not len(keys):
            return
        ids = self._repository.layout.buckets_of(tuples.keys)
        counts = np.bincount(ids, minlength=self._repository.layout.buckets)
        self._make_room(len(keys), counts)
        self._write_buffer.put(tuples, ids, column)
        self._counts += counts

    def flush(self) -> None:
        """Make all offered tuples durable. May be repeated after a TransientStoreError."""
        self._require_open()
        with store_errors(self._repository.directory):
            self._spill()
            self._spills.flush()

    def merge(self) -> None:
        """Answer all offered tuples and deliver the answers. May be repeated after a TransientStoreError."""
        self.tell()
        self.flush()
        if self._spills.unanswered:
            with store_errors(self._repository.directory):
                self._answer()
            self.tell()

    def tell(self) -> None:
        """Deliver the unacknowledged answers. Call it once after opening a DRUM.

        Exceptions of the receiver are passed on.
        """
        self._require_open()
        with store_errors(self._repository.directory):
            self._spills.sync_name()
        while (spill := self._spills.next_answered) is not None:
            if spill.asks:
                self._deliver(spill)
            else:
                self._spills.acknowledge(spill.end)
            self._spills.remove_told()
        self._spills.remove_told()

    def close(self) -> None:
        """Flush. Tuples that are not merged yet stay on disk."""
        if self._is_open:
            self.flush()
            self._is_open = False

    def verify(self) -> list[CorruptionError]:
        """Read every byte that the manifest counts and return the damage."""
        problems: list[CorruptionError] = []
        try:
            with store_errors(self._repository.directory):
                read_log(self._repository.directory, self._repository.files)
        except CorruptionError as error:
            problems.append(error)
        state = self._spills.state
        for spill in state.spills:
            problems += self._repository.verify_spill(spill, state.answered)
        for bucket in self._buckets:
            problems += bucket.verify()
        return problems

    def _check(self) -> None:
        self._spills.state._check()
        for bucket, state in zip(self._buckets, self._spills.state.buckets, strict=True):
            assert bucket.state == state, "a bucket is as the manifest says"
            bucket._check()
        assert int(self._counts.sum()) == self.waiting, "each bucket knows how many tuples wait for it"

    def _require_open(self) -> None:
        if not self._is_open:
            raise ContractError(f"{self._repository.directory}: this DRUM is closed; open another on the directory")

    def _make_room(self, count: int, counts: npt.NDArray[np.int64]) -> None:
        with store_errors(self._repository.directory):
            self._write_buffer.write_aux()
            if not self._write_buffer.has_room_for(count):
                self._spill()
        is_full = (
            int((self._counts + counts).max()) > self._bucket_tuples_max
            or self._spills.disk_bytes + self._write_buffer.aux_bytes > self._disk_bytes
            or self._is_crumbled()
        )
        if is_full and self.waiting:
            self.merge()

    def _is_crumbled(self) -> bool:
        slices = len(self._spills) * self._repository.layout.buckets
        return (
            len(self._spills) >= _SPILLS_MAX
            and self.waiting * self._repository.layout.tuple_bytes < slices * _SLICE_BYTES
        )

    def _spill(self) -> None:
        spill = self._write_buffer.seal(self._spills.end)
        if spill is not None:
            self._spills.add(spill)

    def _answer(self) -> None:
        repository = self._repository
        merged = merge_spills(repository, self._buckets, self._spills.unanswered)
        self._spills.commit_merge(merged.buckets)
        self._buckets = [repository.bucket(number, bucket) for number, bucket in enumerate(merged.buckets)]
        self._counts[:] = 0
        self._spills.sync_name()
        repository.remove_runs(merged.obsolete)

    def _deliver(self, spill: Spill) -> None:
        repository = self._repository
        answers = deliver_spill(repository.files, repository.directory, spill, repository.layout)
        while True:
            # The receiver's exceptions are not errors of the disk.
            with store_errors(repository.directory):
                answer = next(answers, None)
            if answer is None:
                return
            end = answer.first + len(answer.keys)
            if end > self._spills.state.told:
                self._receiver(answer.from_ordinal(self._spills.state.told))
                self._spills.acknowledge(end)

    def _count_flushed(self) -> None:
        for spill in self._spills.unanswered:
            reader = self._repository.keys_reader(spill)
            self._counts += reader.lengths // self._repository.layout.record_bytes(reader.operation)
