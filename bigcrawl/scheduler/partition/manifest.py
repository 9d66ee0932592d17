"""The manifest: all of a partition's committed state but the bytes of the files it names.

How it lies on disk, and how a step commits it, is `bigcrawl.scheduler.partition.manifest_log`'s; here is what it says,
and what of that has changed from one manifest to the next: a map of msgpack, without the fields that are as
they were. Three fields are told by their changes, because they may be large:

    tables     map: table -> (runs, kept, added): its runs, or nil for those as before; how many of the fresh
               records before stay, and those that follow them, a string each
    queues     map: name -> its new state, or nil: it is gone
    parked     (segments, next number, removed, changed, tail): hosts that are gone from their turn, hosts
               with other chains in the same turn, and hosts behind all others; chains are map: level -> extents

The first map of a log is the change from nothing: every field, whole. To change the fields, raise the log's
format version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.drum.bucket import BucketState
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.run import RunInfo
from bigcrawl.scheduler.partition.tables import NO_TABLES, TableStates
from bigcrawl.scheduler.queues.fifo import Cursor, FifoState
from bigcrawl.scheduler.queues.front_queues import LEVELS
from bigcrawl.scheduler.queues.parked_queues import EMPTY_PARKED, Extent, HostChains, ParkedState
from bigcrawl.scheduler.queues.segments import Segment
from bigcrawl.scheduler.queues.turns import FIRST_TURN, TurnState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Fields = dict[str, Any]  # as msgpack reads them

# The id before every id of a stream.
NO_INBOX_ID = "0-0"

PARK_NAME = "park"


class BatchPlace(NamedTuple):
    """Where a kept admit batch lies in the manifest's log: `length` bytes from `offset` on."""

    number: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One committed state.

    Attributes:
        number: one more than the manifest before, over all epochs.
        durable: the number of the last manifest that this epoch's owner knew to be on the medium when it
            wrote this one; 0 when there was none.
        inbox_id: the last inbox entry that was folded.
        tables: URLSeen and the others, see `bigcrawl.scheduler.partition.tables`.
        queues: of every turn, and those over budget, by name; not to be changed.
        turns: where the turns stand.
        in_degrees: how many PLDs have which in-degree, as `InDegreeCounts.to_bytes` writes it; empty: none.
        batch_number: the last admit batch, 0 before the first.
        admitted: URLs admitted so far, which is the sequence number of the next one.
        retained: the admit batches that Redis may still need, in order.
        already: keys that Redis admitted beyond an earlier manifest, with how often; still to be skipped.
    """

    epoch: int
    number: int = 0
    durable: int = 0
    inbox_id: str = NO_INBOX_ID
    tables: TableStates = NO_TABLES
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
    rejected: int = 0

    def files_needed(self) -> dict[str, int]:
        """Return the names of all files this manifest refers to, with the least length of each."""
        needed = {run.name: run.length for table in self.tables for run in table.runs}
        for name, state in self.queues.items():
            needed |= {f"{name}-{s.number}": s.length for s in state.segments}
        return needed | {f"{PARK_NAME}-{s.number}": s.length for s in self.parked.segments}


# Told by their changes, or by the records they lie in.
_APART = frozenset({"tables", "queues", "parked", "retained"})
_PLAIN = tuple(name for name in Manifest.__slots__ if name not in _APART)


def changes(before: Manifest | None, after: Manifest) -> Fields:
    """Return what `apply_changes` needs to make `after` of `before`, but for `retained`; nothing for None."""
    if before is None:
        fields = {name: getattr(after, name) for name in _PLAIN}
        before = Manifest(after.epoch)
    else:
        fields = {name: value for name in _PLAIN if (value := getattr(after, name)) != getattr(before, name)}
    if tables := _table_changes(before.tables, after.tables):
        fields["tables"] = tables
    if queues := _queue_changes(before.queues, after.queues):
        fields["queues"] = queues
    moved = _chain_changes(before.parked.chains, after.parked.chains)
    if any(moved) or after.parked[:2] != before.parked[:2]:
        fields["parked"] = (*after.parked[:2], *moved)
    return fields


def apply_changes(all_changes: Iterable[Fields], retained: Sequence[BatchPlace]) -> Manifest:
    """Return the manifest that a log's maps make, from its first on."""
    fields: Fields = {}
    runs: dict[str, tuple[RunInfo, ...]] = {}
    fresh: dict[str, list[bytes]] = {}
    queues: dict[str, FifoState] = {}
    chains: dict[str, HostChains] = {}
    segments: tuple[Segment, ...] = ()
    next_number = 0
    for change in all_changes:
        for table, (rows, kept, added) in change.pop("tables", {}).items():
            if rows is not None:
                runs[table] = tuple(RunInfo(*row) for row in rows)
            fresh.setdefault(table, [])[kept:] = added
        for name, row in change.pop("queues", {}).items():
            if row is None:
                del queues[name]
            else:
                queues[name] = _queue(row)
        if "parked" in change:
            rows, next_number, *moved = change.pop("parked")
            segments = _segments(rows)
            _apply_chain_changes(chains, *moved)
        fields |= change
    fields["turns"] = TurnState(*fields["turns"])
    names = TableStates._fields
    return Manifest(
        **fields,
        tables=TableStates(*(BucketState(runs.get(t, ()), Memtable.from_strings(fresh.get(t, ()))) for t in names)),
        queues=queues,
        parked=ParkedState(segments, next_number, chains),
        retained=tuple(retained),
    )


def _table_changes(before: TableStates, after: TableStates) -> Fields:
    told: Fields = {}
    for name, old, new in zip(TableStates._fields, before, after, strict=True):
        if new is old or (new.runs == old.runs and new.memtable == old.memtable):
            continue
        kept = len(old.memtable) if new.memtable.begins_with(old.memtable) else 0
        told[name] = (None if new.runs == old.runs else new.runs, kept, new.memtable.strings_from(kept))
    return told


def _queue_changes(before: Mapping[str, FifoState], after: Mapping[str, FifoState]) -> Fields:
    told: Fields = {name: None for name in before if name not in after}
    for name, new in after.items():
        old = before.get(name)
        if new is not old and new != old:
            told[name] = new
    return told


Chain = tuple[str, "HostChains"]


def _chain_changes(
    before: Mapping[str, HostChains], after: Mapping[str, HostChains]
) -> tuple[list[str], list[Chain], list[Chain]]:
    """Return (removed, changed, tail): of `before` in order, what `after` begins with, and the rest of it."""
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
        chains[host] = {level: tuple(Extent(*row) for row in rows) for level, rows in levels.items()}


def _segments(rows: Sequence[tuple[int, int, int]]) -> tuple[Segment, ...]:
    return tuple(Segment(*row) for row in rows)


def _queue(row: tuple[Sequence[tuple[int, int, int]], int, tuple[int, int, int], int]) -> FifoState:
    segments, next_number, head, count = row
    return FifoState(_segments(segments), next_number, Cursor(*head), count)
