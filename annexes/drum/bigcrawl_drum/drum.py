"""DRUM: a disk repository with update management (IRLbot §4.3, Figure 1): buckets, and tuples that wait for them.

A merge delivers its answers before it commits. Until then, runs and offers are unchanged, so a repeated merge finds the
same answers. docs/drum.md has the states of a tuple. One process at a time owns the directory; there is no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE, Kind
from bigcrawl.drum.drum_manifest import DrumState, OffersState, read_log
from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.drum.repository import Repository
from bigcrawl.exceptions import ConfigError, ContractError, CorruptionError
from bigcrawl_drum.aux_column import COLUMN_BYTES_MAX, Aux
from bigcrawl_drum.gathered import GatheredTuples, buckets_of
from bigcrawl_drum.merge import ANSWERS, MergeResult, answers_in_order, merge_gathered
from bigcrawl_drum.offers import OfferedTuples, OfferLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl_drum.merge import Answer, AnswerSheet

MEMORY_BYTES: Final = 96 << 20
DISK_BYTES: Final = 16 << 30
BUCKETS: Final = 256

# For each tuple, a merge holds a key, a sorted key, two indices, masks and a temporary copy.
_MERGED_TUPLE_BYTES = 64

_BUCKETS_MAX = 1 << 14
_AUX_BYTES_MAX = COLUMN_BYTES_MAX // 2
_OPERATIONS = frozenset({CHECK, UPDATE, CHECK_UPDATE})


class Drum:
    """A set of 64-bit keys on disk, or a map from them to values of fixed width, queried in batches.

    The answers are as if the tuples were applied one by one in the order offered, and are delivered in that order. The
    receiver acknowledges an answer by returning; an unacknowledged answer is delivered again with the same ordinals.

    Args:
        directory: used by this DRUM alone; created if missing.
        receiver: called with each `Answer`, during `merge`, `tell` and offers; must not call the DRUM.
        kind: what is stored for a key; fixed when the directory is created.
        buckets: a power of two up to 16,384; fixed likewise. A merge loads the tuples of one bucket at a time.
        memory_bytes: approximate, besides offered batches and delivered answers.
        disk_bytes: waiting keys and aux of this size start a merge.

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
        value_bytes = kind.value.itemsize if kind.value is not None else 0
        files = DiskFiles() if files is None else files
        self._receiver = receiver
        self._repository = Repository(directory, files, kind, buckets)
        self._disk_bytes = disk_bytes
        self._bucket_tuples_max = max(1, memory_bytes // 3 // (_MERGED_TUPLE_BYTES + 4 * value_bytes))
        self._gathered = GatheredTuples(directory, files, kind.value, buckets, memory_bytes // 6)
        with store_errors(directory):
            self._state, self._log = self._repository.open()
            self._offers = OfferLog(directory, files, kind.value, self._state.offered, memory_bytes // 48)
            for block in self._offers.read():
                self._gather_tuples(block.tuples)
        self._buckets = [self._repository.bucket(number, state) for number, state in enumerate(self._state.buckets)]
        self._merged: MergeResult | None = None
        # Tuples that an earlier process flushed, or a merge that has begun.
        self._has_begun = self.waiting > 0
        self._is_open, self._is_telling = True, False

    def __len__(self) -> int:
        return sum(len(bucket) for bucket in self._buckets)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()

    @property
    def batch_max(self) -> int:
        return self._gathered.tuples_max

    @property
    def waiting(self) -> int:
        return int(self._gathered.counts.sum())

    def check(self, keys: KeyArray, aux: Sequence[str] | Sequence[bytes] | Aux | None = None) -> None:
        """Offer tuples that ask for keys and their values; see `offer`."""
        self.offer(keys, CHECK, None, aux)

    def update(self, keys: KeyArray, values: ValueArray | None = None) -> None:
        """Offer tuples that add keys or values; see `offer`."""
        self.offer(keys, UPDATE, values)

    def check_update(
        self,
        keys: KeyArray,
        values: ValueArray | None = None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None = None,
    ) -> None:
        """Offer tuples that check keys and update them; see `offer`."""
        self.offer(keys, CHECK_UPDATE, values, aux)

    def offer(
        self,
        keys: KeyArray,
        ops: int | OpArray,
        values: ValueArray | None = None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None = None,
    ) -> None:
        """Accept a batch of tuples, after a merge if there is no room for it.

        Args:
            keys: uint64, shape (n,), any order, may repeat, n <= `batch_max`.
            ops: one operation for all, or uint8 of shape (n,).
            values: of the kind's dtype, shape (n,); None in a set, or for zeros.
            aux: n strings, delivered with the answers; None for empty ones.

        Raises:
            ContractError: the columns do not fit together, the DRUM is closed, or the caller is its receiver.
            TransientStoreError: the disk failed or is full. The batch was not accepted; offer it again.
            CorruptionError: a merge found damage. The batch was not accepted.
        """
        self._require_open()
        tuples, column = self._checked_tuples(keys, ops, values, aux)
        if not len(keys):
            return
        counts = self._counts_of(tuples)
        with store_errors(self._repository.directory):
            self._offers.write_full()
            self._gathered.make_room(len(keys))
        is_full = (
            int((self._gathered.counts + counts).max()) > self._bucket_tuples_max
            or self._offers.written.size + self._gathered.file_bytes > self._disk_bytes
        )
        if is_full and self.waiting:
            self.merge()
        # Answers that the receiver did not acknowledge are found again, together with those to these tuples.
        self._merged = None
        self._offers.put(tuples, column)
        self._gathered.put(tuples, counts)

    def flush(self) -> None:
        """Make all offered tuples durable. May be repeated after a TransientStoreError."""
        self._require_open()
        files, directory = self._repository.files, self._repository.directory
        with store_errors(directory):
            self._log.sync_name()
            self._offers.write()
            offered = self._offers.written
            if offered == self._state.offered:
                return
            files.sync_file(self._offers.path)
            files.sync_directory(directory)
            self._log.append_offered(offered)
            self._log.sync()
            self._state = self._state._replace(offered=offered)

    def merge(self) -> None:
        """Answer all offered tuples and deliver the answers. May be repeated, like `flush`."""
        self.flush()
        if not self.waiting:
            return
        self._has_begun = True
        if self._merged is None:
            with store_errors(self._repository.directory):
                self._merged = merge_gathered(self._repository, self._buckets, self._gathered)
        if self._merged.sheet is not None:
            self._deliver_answers(self._merged.sheet)
        with store_errors(self._repository.directory):
            self._commit_merge(self._merged)

    def tell(self) -> None:
        """Merge tuples that an earlier process flushed, or that a receiver's error left.

        Call this once after opening.
        """
        self._require_open()
        if self._has_begun:
            self.merge()

    def close(self) -> None:
        """Flush and close. Unmerged tuples stay on disk."""
        if self._is_open:
            self.flush()
            self._is_open = False

    def verify(self) -> list[CorruptionError]:
        """Read every byte that the manifest covers, and return any damage."""
        directory, files = self._repository.directory, self._repository.files
        problems = _damage_to(directory, lambda: read_log(directory, files))
        problems += _damage_to(self._offers.path, self._offers.verify)
        for bucket in self._buckets:
            problems += bucket.verify()
        return problems

    def _check(self) -> None:
        self._state._check()
        for bucket, state in zip(self._buckets, self._state.buckets, strict=True):
            assert bucket.state == state, "a bucket is as the manifest says"
            bucket._check()
        assert self._state.offered.end <= self._state.offered.first + self.waiting, "what is flushed waits"

    def _require_open(self) -> None:
        if not self._is_open:
            raise ContractError(f"{self._repository.directory}: this DRUM is closed; open another on the directory")
        if self._is_telling:
            raise ContractError(
                f"{self._repository.directory}: called by its own receiver; call when the merge has ended"
            )

    def _checked_tuples(
        self,
        keys: KeyArray,
        ops: int | OpArray,
        values: ValueArray | None,
        aux: Sequence[str] | Sequence[bytes] | Aux | None,
    ) -> tuple[OfferedTuples, Aux]:
        if len(keys) > self.batch_max:
            raise ContractError(
                f"{len(keys)} tuples in one offer; at most {self.batch_max} are allowed: raise memory_bytes"
            )
        column = Aux.empty(len(keys)) if aux is None else aux if isinstance(aux, Aux) else Aux.of(aux)
        if len(column.blob) > _AUX_BYTES_MAX:
            raise ContractError(
                f"the aux column has {len(column.blob)} bytes; at most {_AUX_BYTES_MAX} are allowed in one offer"
            )
        if not _OPERATIONS.issuperset({ops} if isinstance(ops, int) else np.unique(ops).tolist()):
            raise ContractError(f"operations must be among {sorted(_OPERATIONS)}: CHECK, UPDATE, CHECK_UPDATE")
        each = np.full(len(keys), ops, dtype=np.uint8) if isinstance(ops, int) else ops.astype(np.uint8)
        lengths = {len(c) for c in (keys, column, each, values) if c is not None}
        if len(lengths) > 1:
            raise ContractError(f"keys, ops, values and aux have lengths {sorted(lengths)}; they must be equal")
        value = self._repository.kind.value
        if values is not None and values.dtype != value:
            raise ContractError(f"values have the dtype {values.dtype}; this DRUM needs {value}")
        if value is not None:
            values = np.zeros(len(keys), dtype=value) if values is None else values.copy()
        # Copies, because they are written later.
        return OfferedTuples(np.array(keys, dtype=KEY_TYPE), each, values), column

    def _counts_of(self, tuples: OfferedTuples) -> npt.NDArray[np.int64]:
        ids = buckets_of(tuples.keys, self._repository.buckets)
        return np.bincount(ids, minlength=self._repository.buckets)

    def _gather_tuples(self, tuples: OfferedTuples) -> None:
        for start in range(0, len(tuples.keys), self.batch_max):
            part = tuples.slice_of(start, start + self.batch_max)
            self._gathered.make_room(len(part.keys))
            self._gathered.put(part, self._counts_of(part))

    def _deliver_answers(self, sheet: AnswerSheet) -> None:
        directory = self._repository.directory
        answers = answers_in_order(self._offers, self._gathered.counts, sheet)
        while True:
            # The receiver's exceptions are not errors of the disk.
            with store_errors(directory):
                answer = next(answers, None)
            if answer is None:
                return
            end = answer.first + len(answer.keys)
            if end > self._state.told:
                self._is_telling = True
                try:
                    self._receiver(answer.from_ordinal(self._state.told))
                finally:
                    self._is_telling = False
                # Even if the disk fails, the answer counts as acknowledged, as long as the process lives.
                self._state = self._state._replace(told=end)
                with store_errors(directory):
                    self._log.append_told(end)

    def _commit_merge(self, merged: MergeResult) -> None:
        repository, old = self._repository, self._state.offered
        state = DrumState(repository.kind, merged.buckets, OffersState(old.number + 1, old.end), old.end)
        old_path = self._offers.path
        self._log.begin(state)
        self._state, self._merged, self._has_begun = state, None, False
        self._buckets = [repository.bucket(number, bucket) for number, bucket in enumerate(state.buckets)]
        self._offers.begin(state.offered)
        self._gathered.clear()
        self._log.sync_name()
        repository.remove_runs(merged.obsolete)
        repository.remove(old_path, repository.directory / ANSWERS)


def _damage_to(path: Path, read: Callable[[], object]) -> list[CorruptionError]:
    try:
        read()
    except CorruptionError as error:
        return [error]
    except OSError as error:
        return [CorruptionError(path, 0, "a readable file", error)]
    return []
