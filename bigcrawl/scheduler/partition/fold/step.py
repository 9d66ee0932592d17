"""One step of a partition's fold, on copies of its state, up to its commit.

    inbox entries -> forgotten URLs -> outcomes -> timed URLs -> edges -> in-degrees -> seen check
                  -> imported rows -> observed rows -> budgets (STAR) -> placement (BEAST) -> choice
    timed URLs that are due -------------------------^

If a step fails, its copies are dropped, and the next step overwrites the files that it wrote.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.scheduler.partition.fold.admission import Admission, PartitionLimits
from bigcrawl.scheduler.partition.fold.budgeting import BudgetedQueues
from bigcrawl.scheduler.partition.fold.seen import (
    EDGE_BYTES,
    RELEASED_A_STEP,
    check_seen,
    decode_edges,
    decode_entries,
    decode_timed_of,
    new_targets,
)
from bigcrawl.scheduler.partition.manifest import UNKNOWN, Manifest
from bigcrawl.scheduler.records.observed import ObservedFormatError, concatenate_rows, unpack_alone, unpack_observed
from bigcrawl.scheduler.records.outcomes import (
    MARKS_FROM,
    OutcomesFormatError,
    check_outcomes,
    last_of_each,
    unpack_keys,
    unpack_outcomes,
)
from bigcrawl.scheduler.records.queued_url import UNCHECKED, UNRUNNABLE, QueuedUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
    from bigcrawl.scheduler.partition.fold.feature import StepPart
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.fold.pld_records import BudgetSource
    from bigcrawl.scheduler.partition.fold.state import PartitionState
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.rules.callbacks import Callbacks


class Step(NamedTuple):
    """The result of a committed step; `hints` are rows for other partitions, which may be lost."""

    batch: AdmitBatch | None
    new: int
    duplicates: int
    rejected: int
    messages: tuple[str, ...] = ()
    hints: tuple[tuple[int, Sequence[tuple[int, ...]]], ...] = ()


class StepFold:
    def __init__(
        self, state: PartitionState, set_aside: Callable[[str, bytes], None], parts: Sequence[StepPart] = ()
    ) -> None:
        self._state = state
        self._set_aside = set_aside
        self._parts = parts
        self._linked: KeyArray = np.empty(0, dtype=np.uint64)
        self._due: list[QueuedUrl] = []
        self.new: list[QueuedUrl] = []
        self.duplicates = 0
        self.put_away = 0
        self.repeats = 0
        self.imported = 0
        self.rejected = 0

    def read(self, entries: Sequence[InboxEntry], source: BudgetSource, now_s: int) -> None:
        self._forget_urls(entries)
        self._record_outcomes(entries)
        self._turn_timed(entries, now_s)
        if source.counts_links:
            self._read_edges(entries)
        self._check_urls(entries, source.callbacks)
        self._merge_rows(entries)
        self._fold_rows(entries)  # last, because an import's tables may be older than these observations

    def _forget_urls(self, entries: Sequence[InboxEntry]) -> None:
        if not entries or not entries[0].forgotten:
            return
        entry, tables = entries[0], self._state.tables
        try:
            keys = unpack_keys(entry.forgotten)
        except OutcomesFormatError:
            self._reject_entry(f"{entry.id}-forgotten", entry.forgotten)
            return
        seen = len(tables.seen)
        tables.commit(tables.seen, tables.seen.remove_keys(keys))
        self.repeats += seen - len(tables.seen)
        tables.commit(tables.ends, tables.ends.remove_keys(keys))
        for part in self._parts:
            part.forget(keys)

    def _record_outcomes(self, entries: Sequence[InboxEntry]) -> None:
        sound = []
        for entry in entries:
            if not entry.outcomes:
                continue
            try:
                check_outcomes(entry.outcomes)
                sound.append((entry.id, entry.outcomes))
            except OutcomesFormatError:
                self._reject_entry(f"{entry.id}-outcomes", entry.outcomes)
        if sound:
            table = self._state.tables.ends
            keys, values = unpack_outcomes(sound)
            are_marks = values["code"] >= MARKS_FROM
            if are_marks.any():
                self._fold_marks(keys[are_marks], values[are_marks])
                keys, values = keys[~are_marks], values[~are_marks]
            self._state.tables.commit(table, table.put(*last_of_each(keys, values)))

    def _fold_marks(self, keys: KeyArray, values: npt.NDArray[Any]) -> None:
        for part in self._parts:
            for code in part.marks:
                is_this = values["code"] == code
                if is_this.any():
                    part.fold_marks(code, keys[is_this], values[is_this])

    def _reject_entry(self, name: str, data: bytes) -> None:
        self.rejected += 1
        self._set_aside(name, data)

    def _turn_timed(self, entries: Sequence[InboxEntry], now_s: int) -> None:
        timed = self._state.turns.timed
        if arrived := decode_timed_of(entries, self._reject_entry):
            waited = len(timed)
            for part in self._parts:
                part.put_timed(arrived, timed, now_s)
            self.repeats += len(timed) - waited
        due: Sequence[QueuedUrl] = timed.release(now_s, RELEASED_A_STEP)
        for part in self._parts if due else ():
            due = part.come_up(due, timed, now_s)
        self._due += due

    def _read_edges(self, entries: Sequence[InboxEntry]) -> None:
        sound = []
        for entry in entries:
            if len(entry.edges) % EDGE_BYTES:
                self._reject_entry(f"{entry.id}-edges", entry.edges)
            elif entry.edges:
                sound.append(entry.edges)
        if sound:
            self._linked = new_targets(self._state.tables, decode_edges(b"".join(sound)))

    def _fold_rows(self, entries: Sequence[InboxEntry]) -> None:
        arrived = []
        for entry in entries:
            if not (entry.observed or entry.alone):
                continue
            for name, data, unpack in (
                ("observed", entry.observed, unpack_observed),
                ("alone", entry.alone, unpack_alone),
            ):
                try:
                    arrived += [unpack(data)] if data else []
                except ObservedFormatError:
                    self._reject_entry(f"{entry.id}-{name}", data)
        if arrived:
            rows = concatenate_rows(arrived)
            for part in self._parts:
                part.fold_rows(rows)

    def _check_urls(self, entries: Sequence[InboxEntry], callbacks: Callbacks) -> None:
        unrunnable = self._state.turns.unrunnable
        self._due += unrunnable.release(callbacks, RELEASED_A_STEP)
        urls, rejected = decode_entries(entries, self._set_aside)
        self.rejected += rejected
        if not urls:
            return
        tables = self._state.tables
        result = check_seen(tables.seen, urls)
        tables.commit(tables.seen, result)
        self.new = [url for url, is_new in zip(urls, result.new.tolist(), strict=True) if is_new]
        self.duplicates = len(urls) - len(self.new)
        self.repeats += sum(bool(url.flags & UNCHECKED) for url in urls)
        if waiting := [url for url in self.new if url.flags & UNRUNNABLE]:
            unrunnable.put(waiting, callbacks)
            self.put_away = len(waiting)
            self.new = [url for url in self.new if not url.flags & UNRUNNABLE]

    def _merge_rows(self, entries: Sequence[InboxEntry]) -> None:
        """Merge another crawl's rows after its waiting URLs, which are new here, but also among its seen keys."""
        imported = [entry for entry in entries if entry.rows]
        if not imported:
            return
        from bigcrawl.scheduler.partition.fold.imported_rows import RowsFormatError, merge_rows, unpack_rows

        for entry in imported:
            try:
                rows = unpack_rows(entry.rows)
            except RowsFormatError:
                self._reject_entry(f"{entry.id}-rows", entry.rows)
                continue
            left = self._left_of(rows)
            if left is None:
                continue
            seen = len(self._state.tables.seen)
            rise = merge_rows(self._state.tables, left)
            self.imported += len(self._state.tables.seen) - seen
            if rise is not None:
                self._state.raise_in_degrees(rise)

    def _left_of(self, rows: TableRows) -> TableRows | None:
        left: TableRows | None = rows
        for part in self._parts:
            left = part.imported(left) if left is not None else None
        return left

    def choose(
        self,
        source: BudgetSource,
        room: int,
        hot: Mapping[str, int],
        limits: PartitionLimits,
        away: Mapping[str, int] | None = None,
        extra_room: int | None = None,
    ) -> list[QueuedUrl]:
        state = self._state
        budgeting = BudgetedQueues(state.tables, state.turns, source, limits.features, self._parts)
        rise = budgeting.place_arrivals(self.new, self._linked, self._due)
        if rise is not None:
            state.raise_in_degrees(rise)
        admission = Admission(state, budgeting.refill, hot, limits, away, source.withholds)
        chosen = admission.choose(room, room if extra_room is None else extra_room)
        budgeting.reread_for(len(chosen))
        for part in self._parts if chosen else ():
            chosen = part.admitted(chosen)
        return chosen

    def outcome(self, batch: AdmitBatch | None) -> Step:
        messages = tuple(message for part in self._parts for message in part.messages)
        hints = tuple((kind, rows) for part in self._parts for kind, rows in part.hints if rows)
        return Step(batch, len(self.new), self.duplicates, self.rejected, messages, hints)

    def counted_in(self, manifest: Manifest) -> Manifest:
        return replace(
            manifest,
            folded_urls=manifest.folded_urls + len(self.new) + self.duplicates + self.put_away,
            duplicates=manifest.duplicates + self.duplicates,
            repeats=UNKNOWN if manifest.repeats == UNKNOWN else manifest.repeats + self.repeats,
            imported=manifest.imported + self.imported,
            rejected=manifest.rejected + self.rejected,
            counts=self._new_counts(manifest.counts),
            untold=manifest.untold + b"".join([part.owed for part in self._parts]),
        )

    def _new_counts(self, before: Mapping[str, int]) -> Mapping[str, int]:
        counted = [(name, count) for part in self._parts for name, count in part.counted.items() if count]
        if not counted:
            return before
        counts = Counter(before)
        for name, count in counted:
            counts[name] += count
        return counts
