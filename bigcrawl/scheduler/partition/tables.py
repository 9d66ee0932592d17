from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from bigcrawl.drum.bucket import EMPTY_BUCKET, ApplyResult, Bucket, BucketState, CheckResult, Kind
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.feature_list import modules_of
from bigcrawl.scheduler.budgets.placement import RECORD
from bigcrawl.scheduler.records.outcomes import VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory

    TableStates = Mapping[str, BucketState]

T = TypeVar("T")

# Small: each new log of the manifest has all records of the memtables.
_FRESH_MAX = 1024


KINDS: Final[dict[str, Kind]] = {
    "seen": Kind("run"),
    "edges": Kind("edge", fresh_max=_FRESH_MAX),
    "plds": Kind("pld", RECORD, fresh_max=_FRESH_MAX),
    "ends": Kind("end", VALUE, fresh_max=_FRESH_MAX),
    "hosts": Kind("host", fresh_max=_FRESH_MAX),
}

LARGER_COUNTS: Final[dict[str, tuple[str, ...]]] = {"plds": ("in_degree",)}

for _module in modules_of("fold"):
    KINDS.update(_module.FEATURE.tables)
    LARGER_COUNTS.update(_module.FEATURE.larger_counts)

NO_TABLES: Final[TableStates] = dict.fromkeys(KINDS, EMPTY_BUCKET)

COUNTS: Final[tuple[str, ...]] = tuple(name for module in modules_of("fold") for name in module.FEATURE.counts)


class Tables:
    def __init__(self, epoch: EpochDirectory, buckets: dict[str, Bucket]) -> None:
        self._epoch = epoch
        self._all = buckets
        self.seen = buckets["seen"]
        self.edges = buckets["edges"]
        self.plds = buckets["plds"]
        self.ends = buckets["ends"]
        self.hosts = buckets["hosts"]

    @classmethod
    def restore(cls, epoch: EpochDirectory, states: TableStates) -> Tables:
        kinds = KINDS.items()
        return cls(
            epoch, {name: Bucket(epoch.path, kind, states.get(name, EMPTY_BUCKET), epoch.files) for name, kind in kinds}
        )

    def __repr__(self) -> str:
        return f"<Tables {' '.join(map(repr, self._all.values()))}>"

    def __getitem__(self, name: str) -> Bucket:
        return self._all[name]

    def fork(self) -> Tables:
        return Tables(self._epoch, {name: bucket.fork() for name, bucket in self._all.items()})

    def states(self) -> TableStates:
        return {name: bucket.state for name, bucket in self._all.items()}

    def commit(self, bucket: Bucket, result: CheckResult | ApplyResult) -> None:
        """Adopt the result of updating one of these tables. Files written for it are synced later, or deleted."""
        for run in result.written:
            self._epoch.record_written(run.name)
        bucket.commit(result)

    def record(self, name: str, key: int) -> npt.NDArray[Any] | None:
        found, values = self._all[name].values(np.array([key], dtype=KEY_TYPE))
        return values[0] if found[0] else None

    def verdicts(self, name: str, keys: KeyArray, verdict_of: Callable[[Any], T]) -> tuple[T | None, ...]:
        if not len(keys):
            return ()
        found, records = self._all[name].values(keys)
        return tuple(verdict_of(record) if there else None for there, record in zip(found, records, strict=True))

    def verify(self) -> list[CorruptionError]:
        return [problem for bucket in self._all.values() for problem in bucket.verify()]

    def _check(self) -> None:
        for bucket in self._all.values():
            bucket._check()
