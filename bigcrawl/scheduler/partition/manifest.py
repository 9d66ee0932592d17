"""The manifest: all committed state but files' contents. For new fields, raise the log's format version."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.drum.bucket import EMPTY_BUCKET, BucketState
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.run import RunInfo
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.partition.tables import COUNTS, KINDS, NO_TABLES
from bigcrawl.scheduler.queues.fifo import Cursor, FifoState
from bigcrawl.scheduler.queues.front_queues import LEVELS
from bigcrawl.scheduler.queues.parked_queues import EMPTY_PARKED, ChainExtent, HostChains, ParkedState
from bigcrawl.scheduler.queues.segments import Segment
from bigcrawl.scheduler.queues.turn_state import FIRST_TURN, TurnState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    Fields = dict[str, Any]

NO_INBOX_ID = "0-0"

PARK_NAME = "park"

UNKNOWN = -1


class BatchPlace(NamedTuple):
    number: int
    offset: int
    length: int


class PartitionSizes(NamedTuple):
    """Sizes in bytes of URLSeen, of the other tables, and of the queues (including parked URLs)."""

    seen: int
    tables: int
    queues: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One committed state (docs/file-formats.md).

    Attributes:
        number: rises by one with each manifest, across epochs.
        durable: the last manifest of this epoch that was known to be on the medium; 0 for none.
        queues: must not be changed.
        admitted: URLs ever admitted; the next sequence number.
        retained: admit batches that Redis may still need, in order.
        already: keys and counts of URLs that Redis admitted before the disk knew; admission skips them.
        repeats: queued URLs that URLSeen had already, or does not have; `UNKNOWN` after a version without this count.
        untold: rows for other partitions, perhaps unsent; see `records.observed.OWED`.
    """

    epoch: int
    number: int = 0
    durable: int = 0
    inbox_id: str = NO_INBOX_ID
    tables: Mapping[str, BucketState] = field(default_factory=lambda: NO_TABLES)
    queues: Mapping[str, FifoState] = field(default_factory=lambda: MappingProxyType({}))
    turns: TurnState = FIRST_TURN
    in_degrees: bytes = b""
    credits: tuple[int, ...] = (0,) * LEVELS
    parked: ParkedState = EMPTY_PARKED
    batch_number: int = 0
    admitted: int = 0
    retained: tuple[BatchPlace, ...] = ()
    already: tuple[tuple[int, int], ...] = ()
    folded_urls: int = 0
    duplicates: int = 0
    repeats: int = 0
    imported: int = 0
    rejected: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    untold: bytes = b""

    def sizes(self) -> PartitionSizes:
        tables = {
            name: sum(run.length for run in table.runs) + table.memtable.nbytes for name, table in self.tables.items()
        }
        segments = [segment for state in self.queues.values() for segment in state.segments]
        seen = tables.get("seen", 0)
        queues = sum(segment.length for segment in (*segments, *self.parked.segments))
        return PartitionSizes(seen, sum(tables.values()) - seen, queues)

    def files_needed(self) -> dict[str, int]:
        needed = {run.name: run.length for table in self.tables.values() for run in table.runs}
        for name, state in self.queues.items():
            needed |= {f"{name}-{s.number}": s.length for s in state.segments}
        return needed | {f"{PARK_NAME}-{s.number}": s.length for s in self.parked.segments}


# Fields whose differences have a form of their own, and `retained`, which follows from the records.
_APART = frozenset({"tables", "queues", "parked", "retained", "counts"})
_PLAIN = tuple(name for name in Manifest.__slots__ if name not in _APART)


def manifest_changes(before: Manifest | None, after: Manifest) -> Fields:
    """Return the difference between two manifests, without `retained`; None stands for an empty manifest."""
    if before is None:
        fields = {name: getattr(after, name) for name in _PLAIN}
        before = Manifest(after.epoch)
    else:
        fields = {name: value for name in _PLAIN if (value := getattr(after, name)) != getattr(before, name)}
    fields |= {name: count for name, count in after.counts.items() if count != before.counts.get(name, 0)}
    if tables := _table_changes(before.tables, after.tables):
        fields["tables"] = tables
    if queues := _queue_changes(before.queues, after.queues):
        fields["queues"] = queues
    moved = _chain_changes(before.parked.chains, after.parked.chains)
    if any(moved) or after.parked[:2] != before.parked[:2]:
        fields["parked"] = (*after.parked[:2], *moved)
    return fields


def apply_changes(path: str | PathLike[str], all_changes: Iterable[Fields], retained: Sequence[BatchPlace]) -> Manifest:
    fields: Fields = {}
    runs: dict[str, tuple[RunInfo, ...]] = {}
    records: dict[str, list[bytes]] = {}
    queues: dict[str, FifoState] = {}
    chains: dict[str, HostChains] = {}
    segments: tuple[Segment, ...] = ()
    next_number = 0
    for change in all_changes:
        for table, (rows, kept, added) in change.pop("tables", {}).items():
            if rows is not None:
                runs[table] = tuple(RunInfo(*row) for row in rows)
            records.setdefault(table, [])[kept:] = added
        for name, row in change.pop("queues", {}).items():
            if row is None:
                del queues[name]
            else:
                queues[name] = _parse_queue(row)
        if "parked" in change:
            rows, next_number, *moved = change.pop("parked")
            segments = _parse_segments(rows)
            _apply_chain_changes(chains, *moved)
        fields |= change
    if "repeats" not in fields:
        fields["repeats"] = UNKNOWN
    fields["turns"] = TurnState(*fields["turns"])
    if unknown := (runs.keys() | records.keys()) - KINDS.keys() | fields.keys() - {*COUNTS, *_PLAIN}:
        raise ConfigError(
            f"{path} has state of features that this version of bigcrawl lacks: {', '.join(sorted(unknown))}; "
            f"continue with a version that has them (see bigcrawl/feature_list.py)"
        )
    counts = {name: fields.pop(name) for name in COUNTS if name in fields}
    return Manifest(
        **fields,
        tables={t: BucketState(runs.get(t, ()), Memtable.from_strings(records.get(t, ()))) for t in KINDS},
        counts=counts,
        queues=queues,
        parked=ParkedState(segments, next_number, chains),
        retained=tuple(retained),
    )


def _table_changes(before: Mapping[str, BucketState], after: Mapping[str, BucketState]) -> Fields:
    changed: Fields = {}
    for name, new in after.items():
        old = before.get(name, EMPTY_BUCKET)
        if new is old or (new.runs == old.runs and new.memtable == old.memtable):
            continue
        kept = len(old.memtable) if new.memtable.begins_with(old.memtable) else 0
        changed[name] = (None if new.runs == old.runs else new.runs, kept, new.memtable.strings_from(kept))
    return changed


def _queue_changes(before: Mapping[str, FifoState], after: Mapping[str, FifoState]) -> Fields:
    changed: Fields = {name: None for name in before if name not in after}
    for name, new in after.items():
        old = before.get(name)
        if new is not old and new != old:
            changed[name] = new
    return changed


Chain = tuple[str, "HostChains"]


def _chain_changes(
    before: Mapping[str, HostChains], after: Mapping[str, HostChains]
) -> tuple[list[str], list[Chain], list[Chain]]:
    """Return hosts that have no chains any more, hosts whose chains changed, and hosts that were added at the end."""
    removed: list[str] = []
    changed: list[Chain] = []
    rest = iter(after.items())
    host, chains = next(rest, ("", {}))
    for old_host, old_chains in before.items():
        if old_host != host:
            removed.append(old_host)
            continue
        if chains is not old_chains and chains != old_chains:
            changed.append((host, chains))
        host, chains = next(rest, ("", {}))
    return removed, changed, [(host, chains), *rest] if chains else []


def _apply_chain_changes(
    chains: dict[str, HostChains], removed: Iterable[str], changed: Iterable[Any], tail: Iterable[Any]
) -> None:
    for host in removed:
        del chains[host]
    for host, levels in (*changed, *tail):
        chains[host] = {level: tuple(ChainExtent(*row) for row in rows) for level, rows in levels.items()}


def _parse_segments(rows: Sequence[tuple[int, int, int]]) -> tuple[Segment, ...]:
    return tuple(Segment(*row) for row in rows)


def _parse_queue(row: tuple[Sequence[tuple[int, int, int]], int, tuple[int, int, int], int]) -> FifoState:
    segments, next_number, head, count = row
    return FifoState(_parse_segments(segments), next_number, Cursor(*head), count)
