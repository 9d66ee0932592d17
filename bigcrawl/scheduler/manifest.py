"""The manifest: all of a partition's committed state but the bytes of the files it names.

How it lies on disk, and how a step commits it, is `bigcrawl.scheduler.manifest_log`'s; here is what it says,
and what of that has changed from one manifest to the next: a map of msgpack, without the fields that are as
they were. Three fields are told by their changes, because they may be large:

    levels     map: level -> its new state
    fresh      (kept, added): how many of the strings before stay, and those that follow them; each is a key,
               and was, in logs of old, the keys of a step
    parked     (segments, next number, removed, changed, tail): hosts that are gone from their turn, hosts
               with other chains in the same turn, and hosts behind all others; chains are map: level -> extents

The first map of a log is the change from nothing: every field, whole. To change the fields, raise the log's
format version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.drum.format import run_bytes
from bigcrawl.drum.fresh import EMPTY_FRESH, FreshKeys, in_strings
from bigcrawl.drum.run import RunInfo
from bigcrawl.scheduler.front_queues import EMPTY_LEVEL, LEVELS, Cursor, LevelState
from bigcrawl.scheduler.parked_queues import EMPTY_PARKED, Extent, HostChains, ParkedState
from bigcrawl.scheduler.segments import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Fields = dict[str, Any]  # as msgpack reads them

# The id before every id of a stream.
NO_INBOX_ID = "0-0"

PARK_NAME = "park"


def level_name(level: int) -> str:
    """Return the prefix of a front queue's segments."""
    return f"queue-{level}"


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
        runs: URLSeen's, oldest first.
        fresh: the keys of URLSeen that are in no run.
        batch_number: the last admit batch, 0 before the first.
        admitted: URLs admitted so far, which is the sequence number of the next one.
        retained: the admit batches that Redis may still need, in order.
        already: keys that Redis admitted beyond an earlier manifest, with how often; still to be skipped.
    """

    epoch: int
    number: int = 0
    durable: int = 0
    inbox_id: str = NO_INBOX_ID
    runs: tuple[RunInfo, ...] = ()
    fresh: FreshKeys = EMPTY_FRESH
    levels: tuple[LevelState, ...] = (EMPTY_LEVEL,) * LEVELS
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
        needed = {run.name: run_bytes(run.keys) for run in self.runs}
        for level, state in enumerate(self.levels):
            needed |= {f"{level_name(level)}-{s.number}": s.length for s in state.segments}
        return needed | {f"{PARK_NAME}-{s.number}": s.length for s in self.parked.segments}


# Told by their changes, or by the records they lie in.
_APART = frozenset({"levels", "fresh", "parked", "retained"})
_PLAIN = tuple(name for name in Manifest.__slots__ if name not in _APART)


def changes(before: Manifest | None, after: Manifest) -> Fields:
    """Return what `apply_changes` needs to make `after` of `before`, but for `retained`; nothing for None."""
    if before is None:
        fields = {name: getattr(after, name) for name in _PLAIN}
        before = Manifest(after.epoch)
    else:
        fields = {name: value for name in _PLAIN if (value := getattr(after, name)) != getattr(before, name)}
    if after.levels != before.levels:
        pairs = enumerate(zip(before.levels, after.levels, strict=True))
        fields["levels"] = {level: new for level, (old, new) in pairs if new != old}
    if after.fresh != before.fresh:
        kept = len(before.fresh) if after.fresh.begins_with(before.fresh) else 0
        fields["fresh"] = (kept, in_strings(after.fresh.bytes_from(kept)))
    moved = _chain_changes(before.parked.chains, after.parked.chains)
    if any(moved) or after.parked[:2] != before.parked[:2]:
        fields["parked"] = (*after.parked[:2], *moved)
    return fields


def apply_changes(all_changes: Iterable[Fields], retained: Sequence[BatchPlace]) -> Manifest:
    """Return the manifest that a log's maps make, from its first on."""
    fields: Fields = {}
    levels = [EMPTY_LEVEL] * LEVELS
    fresh: list[bytes] = []
    chains: dict[str, HostChains] = {}
    segments: tuple[Segment, ...] = ()
    next_number = 0
    for change in all_changes:
        for level, row in change.pop("levels", {}).items():
            levels[level] = _level(row)
        if "fresh" in change:
            kept, added = change.pop("fresh")
            fresh[kept:] = added
        if "parked" in change:
            rows, next_number, *moved = change.pop("parked")
            segments = _segments(rows)
            _apply_chain_changes(chains, *moved)
        fields |= change
    fields["runs"] = tuple(RunInfo(*run) for run in fields["runs"])
    return Manifest(
        **fields,
        levels=tuple(levels),
        fresh=FreshKeys.from_bytes(b"".join(fresh)),
        parked=ParkedState(segments, next_number, chains),
        retained=tuple(retained),
    )


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


def _level(row: tuple[Sequence[tuple[int, int, int]], int, tuple[int, int, int], int]) -> LevelState:
    segments, next_number, head, count = row
    return LevelState(_segments(segments), next_number, Cursor(*head), count)
