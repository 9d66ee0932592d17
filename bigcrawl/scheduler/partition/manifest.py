"""The manifest: all committed state of a partition, except the contents of the files that it names.

`bigcrawl.scheduler.partition.manifest_log` stores manifests and commits them. This module defines their fields, and the
difference between one manifest and the next. A difference is a msgpack map of the fields that have changed. Three
fields may be large, so they have differences of their own:

    tables    map: table -> (runs, kept, added)
                  runs     the table's runs; nil if they have not changed
                  kept     how many of the previous memtable's records stay
                  added    the records that follow them, one string each
    queues    map: name -> its new state; nil if the queue was removed
    parked    (segments, next number, removed, changed, tail)
                  removed  hosts that left the order of turns
                  changed  hosts with other chains at the same place; chains are a map: level -> extents
                  tail     hosts with their chains that follow all others

The first map of a log has all fields in full. To change the fields, raise the log's format version.
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
from bigcrawl.scheduler.queues.turn_state import FIRST_TURN, TurnState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Fields = dict[str, Any]  # as msgpack returns them

# Less than every id of a stream.
NO_INBOX_ID = "0-0"

PARK_NAME = "park"

UNKNOWN = -1


class BatchPlace(NamedTuple):
    """Where the manifest's log has a retained admit batch: `length` bytes from `offset` on."""

    number: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One committed state.

    Attributes:
        epoch: the epoch of its owner.
        number: one more than that of the previous manifest, across epochs.
        durable: the number of the last manifest that its owner, in this epoch, knew to be on the medium when it wrote
            this one; 0 if there was none.
        inbox_id: the last inbox entry that was folded.
        tables: URLSeen and the others, see `bigcrawl.scheduler.partition.tables`.
        queues: the queues of all turns and the over-budget queues, by name; must not be changed.
        turns: the state of the turns.
        in_degrees: the number of PLDs with each in-degree, as `InDegreeCounts.to_bytes` returns it; empty if there is
            none.
        credits: how far each priority level is behind its share, see `queues.front_queues`.
        parked: the parked queues.
        batch_number: the number of the last admit batch; 0 before the first.
        admitted: how many URLs were ever admitted; the sequence number of the next one.
        retained: where the admit batches are that Redis may still need, in order.
        already: keys of URLs that Redis had admitted before the disk knew, with a count each; admission skips them.
        folded_urls: how many URLs were ever read from the inbox.
        duplicates: how many of them had been seen.
        repeats: how many of the URLs that were ever queued were in URLSeen already, or are not there: fetched each
            time they are found, moved back from Redis, visited again, forgotten. `UNKNOWN` if the log was begun by a
            version that did not count them.
        imported: how many keys were added to URLSeen by an import, with no URL to queue.
        rejected: how many inbox entries were ever set aside.
        exact_copies, near_copies: how many pages the table `copies` has of each kind.
        mirrors: how many PLDs are mirrors by the table of that name.
        untold: rows about near copies for other partitions, which were perhaps not sent yet; see
            `bigcrawl.scheduler.records.contents`.
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
    repeats: int = 0
    imported: int = 0
    rejected: int = 0
    exact_copies: int = 0
    near_copies: int = 0
    mirrors: int = 0
    untold: bytes = b""

    def files_needed(self) -> dict[str, int]:
        """Return the names of all files that this manifest refers to, with the committed length of each."""
        needed = {run.name: run.length for table in self.tables for run in table.runs}
        for name, state in self.queues.items():
            needed |= {f"{name}-{s.number}": s.length for s in state.segments}
        return needed | {f"{PARK_NAME}-{s.number}": s.length for s in self.parked.segments}


# Fields with differences of their own, and `retained`, which follows from the records.
_APART = frozenset({"tables", "queues", "parked", "retained"})
_PLAIN = tuple(name for name in Manifest.__slots__ if name not in _APART)


def changes(before: Manifest | None, after: Manifest) -> Fields:
    """Return the difference between two manifests, without `retained`. None stands for an empty manifest."""
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
    """Return the manifest that all maps of a log describe, applied in order."""
    fields: Fields = {}
    runs: dict[str, tuple[RunInfo, ...]] = {}
    records: dict[str, list[bytes]] = {}  # of the tables' memtables
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
                queues[name] = _queue(row)
        if "parked" in change:
            rows, next_number, *moved = change.pop("parked")
            segments = _segments(rows)
            _apply_chain_changes(chains, *moved)
        fields |= change
    if "repeats" not in fields:
        fields["repeats"] = UNKNOWN
    fields["turns"] = TurnState(*fields["turns"])
    names = TableStates._fields
    return Manifest(
        **fields,
        tables=TableStates(*(BucketState(runs.get(t, ()), Memtable.from_strings(records.get(t, ()))) for t in names)),
        queues=queues,
        parked=ParkedState(segments, next_number, chains),
        retained=tuple(retained),
    )


def _table_changes(before: TableStates, after: TableStates) -> Fields:
    changed: Fields = {}
    for name, old, new in zip(TableStates._fields, before, after, strict=True):
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
    """Return (removed, changed, tail) as in the module's docstring: how `after` differs from `before`."""
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
