"""One step of a partition's fold, on copies of its state, up to its commit (steps 4 to 7).

    inbox entries -> forgotten URLs -> outcomes -> revisits -> edges -> in-degrees -> votes -> contents
                  -> seen check -> imported rows -> budgets (STAR) -> placement (BEAST) -> choice
    revisits, by time -----------------------------^

Nothing here is committed or sent. If a step fails, its copies are dropped, and the next step overwrites the files that
it wrote. No clock, no Redis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.content.copies import NO_COPIES, find_exact, note_all, note_near
from bigcrawl.content.near_copies import find_near
from bigcrawl.scheduler.budgets.mirrors import NO_MIRRORS
from bigcrawl.scheduler.budgets.traps import note_same_content, note_wildcards
from bigcrawl.scheduler.partition.fold.admission import Admission
from bigcrawl.scheduler.partition.fold.budgeting import Budgeting
from bigcrawl.scheduler.partition.fold.edges import EdgesFormatError, decode_edges, new_targets
from bigcrawl.scheduler.partition.fold.imported_rows import RowsFormatError, merge_rows, unpack_rows
from bigcrawl.scheduler.partition.fold.mirroring import count_new_mirrors, count_samples, find_shared, only_sampled
from bigcrawl.scheduler.partition.fold.seen import (
    RELEASED_A_STEP,
    check_seen,
    decode_entries,
    decode_revisits_of,
    queue_revisits,
)
from bigcrawl.scheduler.partition.manifest import UNKNOWN
from bigcrawl.scheduler.queues.looks import NOTHING_LISTED, look_again_s
from bigcrawl.scheduler.queues.votes import added_votes, with_received
from bigcrawl.scheduler.records.contents import (
    ContentRows,
    ContentsFormatError,
    RowKind,
    pack_found,
    unpack_contents,
)
from bigcrawl.scheduler.records.outcomes import (
    FETCHED,
    SAME_CONTENT,
    WILDCARD,
    OutcomesFormatError,
    check_outcomes,
    last_of_each,
    unpack_keys,
    unpack_outcomes,
)
from bigcrawl.scheduler.records.queued_url import UNCHECKED, UNRUNNABLE
from bigcrawl.scheduler.records.votes import VotesFormatError, unpack_votes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.mirrors import MirrorChange, MirrorRules
    from bigcrawl.scheduler.budgets.traps import TrapChange
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
    from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
    from bigcrawl.scheduler.partition.fold.budget_source import BudgetSource
    from bigcrawl.scheduler.partition.fold.mirroring import Hint, Sample
    from bigcrawl.scheduler.partition.fold.state import PartitionState
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.queues.looks import Modified
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.callbacks import Callbacks


class Step(NamedTuple):
    """What a committed step did.

    Attributes:
        batch: the URLs to admit into Redis now; None if there were none, or no room.
        new: how many URLs were queued.
        duplicates: how many URLs had been seen before.
        rejected: how many inbox entries could not be decoded and were set aside.
        trap_changes: PLDs that were caught as traps, or freed.
        mirror_changes: PLDs that were found to be mirrors, or none any longer.
        told: rows about what PLDs have in common, for the inboxes of other partitions. Those that are lost are missed,
            and nothing else.
    """

    batch: AdmitBatch | None
    new: int
    duplicates: int
    rejected: int
    trap_changes: tuple[TrapChange, ...] = ()
    mirror_changes: tuple[MirrorChange, ...] = ()
    told: tuple[tuple[RowKind, Sequence[tuple[int, ...]]], ...] = ()


class StepFold:
    """One step on a fork of the state: `read` its entries, then `choose`."""

    def __init__(
        self, state: PartitionState, set_aside: Callable[[str, bytes], None], mirrors: MirrorRules = NO_MIRRORS
    ) -> None:
        self._state = state
        self._set_aside = set_aside
        self._mirror_rules = mirrors
        self._linked: KeyArray = np.empty(0, dtype=np.uint64)
        self._due: list[QueuedUrl] = []
        self.new: list[QueuedUrl] = []
        self.duplicates = 0
        self.put_away = 0
        self.repeats = 0
        self.imported = 0
        self.rejected = 0
        self.trap_changes: tuple[TrapChange, ...] = ()
        self.copies = NO_COPIES
        self.found = b""
        self.counted: list[Sample] = []
        self.shared: list[Hint] = []
        self.mirrors = 0
        self.mirror_changes: tuple[MirrorChange, ...] = ()

    def __repr__(self) -> str:
        return f"<StepFold new={len(self.new)} duplicates={self.duplicates} rejected={self.rejected}>"

    def read(
        self, entries: Sequence[InboxEntry], source: BudgetSource, now_s: int, modified: Modified = NOTHING_LISTED
    ) -> None:
        """Fold new entries, and release revisits that are due, or have changed by `modified`. See `Partition.step`."""
        self._forget(entries)
        self._note_outcomes(entries)
        self._turn_revisits(entries, now_s, modified)
        if source.budgets is not None or source.counts_links:
            self._read_edges(entries)
        if source.counts_votes:
            self._read_votes(entries)
        self._check_urls(entries, source.callbacks)
        self._merge_rows(entries)
        self._merge_contents(entries)  # rows of an import may name first pages of the same contents

    def _forget(self, entries: Sequence[InboxEntry]) -> None:
        """Forget that the URLs named by the first entry were seen or have ended."""
        if not entries or not entries[0].forgotten:
            return
        entry, tables = entries[0], self._state.tables
        try:
            keys = unpack_keys(entry.forgotten)
        except OutcomesFormatError:
            self._reject(f"{entry.id}-forgotten", entry.forgotten)
            return
        seen = len(tables.seen)
        tables.commit(tables.seen, tables.seen.without(keys))
        self.repeats += seen - len(tables.seen)
        tables.commit(tables.ends, tables.ends.without(keys))
        tables.commit(tables.visits, tables.visits.without(keys))

    def _note_outcomes(self, entries: Sequence[InboxEntry]) -> None:
        """Record how URLs ended. The last end counts if there are several."""
        sound = []
        for entry in entries:
            if not entry.outcomes:
                continue
            try:
                check_outcomes(entry.outcomes)
                sound.append((entry.id, entry.outcomes))
            except OutcomesFormatError:
                self._reject(f"{entry.id}-outcomes", entry.outcomes)
        if sound:
            table = self._state.tables.ends
            keys, values = unpack_outcomes(sound)
            fetched = values["code"] == FETCHED
            if fetched.any():
                self._count_bytes(keys[fetched], values["detail"][fetched].astype(np.uint64) << np.uint64(10))
                keys, values = keys[~fetched], values[~fetched]
            for code, note in ((SAME_CONTENT, note_same_content), (WILDCARD, note_wildcards)):
                is_this = values["code"] == code
                if is_this.any():
                    self._note_traps(note, *last_of_each(keys[is_this], values[is_this]))
                    keys, values = keys[~is_this], values[~is_this]
            self._state.tables.commit(table, table.put(*last_of_each(keys, values)))

    def _count_bytes(self, accounts: KeyArray, sizes: npt.NDArray[np.uint64]) -> None:
        table = self._state.tables.totals
        distinct, whose = np.unique(accounts, return_inverse=True)
        _, totals = table.values(distinct)
        np.add.at(totals["bytes"], whose, sizes)
        self._state.tables.commit(table, table.put(distinct, totals))

    def _note_traps(self, note: Callable[..., Any], plds: KeyArray, values: npt.NDArray[Any]) -> None:
        noted = note(self._state.tables.traps, plds, values["detail"])
        if noted is not None:
            self._state.tables.commit(self._state.tables.traps, self._state.tables.traps.put(*noted))

    def _reject(self, name: str, data: bytes) -> None:
        self.rejected += 1
        self._set_aside(name, data)

    def _turn_revisits(self, entries: Sequence[InboxEntry], now_s: int, modified: Modified) -> None:
        """Queue the revisits in the entries, and release some of those that are due, or have changed by `modified`."""
        queue = self._state.turns.revisits
        arrived = decode_revisits_of(entries, self._reject)
        self.repeats += queue_revisits(self._state.tables, queue, arrived, now_s, modified)
        for url in queue.release(now_s, RELEASED_A_STEP):
            look_s = look_again_s(url, modified, now_s)
            if look_s is None:
                self._due.append(url)
            else:
                queue.put(url, look_s, now_s)

    def _read_edges(self, entries: Sequence[InboxEntry]) -> None:
        """Record the edges in the entries."""
        edges = []
        for entry in entries:
            if not entry.edges:
                continue
            try:
                edges.append(decode_edges(entry.edges))
            except EdgesFormatError:
                self._reject(f"{entry.id}-edges", entry.edges)
        if edges:
            self._linked = new_targets(self._state.tables, np.concatenate(edges))

    def _read_votes(self, entries: Sequence[InboxEntry]) -> None:
        """Count the votes in the entries."""
        votes = []
        for entry in entries:
            if not entry.votes:
                continue
            try:
                votes.append(unpack_votes(entry.votes))
            except VotesFormatError:
                self._reject(f"{entry.id}-votes", entry.votes)
        if votes:
            tables = self._state.tables
            added = added_votes(tables.votes, np.concatenate(votes))
            if added is not None:
                tables.commit(tables.votes, tables.votes.put(*added))

    def _merge_contents(self, entries: Sequence[InboxEntry]) -> None:
        """Find the pages in the entries whose content another page had before, or nearly.

        What is nearly that of another page is `found`, to be sent to the partitions of these contents. What is learned
        of mirrors is `counted` and `shared`, for the partitions of contents and of PLDs.
        """
        arrived = []
        for entry in entries:
            if not entry.contents:
                continue
            try:
                arrived.append(unpack_contents(entry.contents))
            except ContentsFormatError:
                self._reject(f"{entry.id}-contents", entry.contents)
        if not arrived:
            return
        tables = self._state.tables
        rows = ContentRows(*map(_together, zip(*arrived, strict=True)))
        seen, sketched, found = rows[:3]
        if len(seen):
            self.copies += find_exact(tables.contents, tables.copies, seen["content"], seen["page"], tables.commit)
        if len(found):
            self.copies += note_near(tables.contents, tables.copies, found, tables.commit)
        if len(sketched):
            near = find_near(tables.near, sketched, lambda result: tables.commit(tables.near, result))
            self.found = pack_found(near.contents, near.pages, near.originals)
        self._look_for_mirrors(rows)

    def _look_for_mirrors(self, rows: ContentRows) -> None:
        share = self._mirror_rules.share
        if not share:
            return
        if len(rows.sampled) or len(rows.shared):
            self.counted, more = count_samples(self._state.tables, rows.sampled, rows.shared, share)
            self.mirrors += more
        if len(rows.counted):
            self.shared = find_shared(self._state.tables, rows.counted)

    def _check_urls(self, entries: Sequence[InboxEntry], callbacks: Callbacks) -> None:
        """Look up all URLs of the entries in URLSeen, and add the new ones; those that could not be run are put away.

        Some of those that the spider can run by now are released.
        """
        unrunnable = self._state.turns.unrunnable
        self._due += unrunnable.release(callbacks, RELEASED_A_STEP)
        urls, rejected = decode_entries(entries, self._set_aside)
        self.rejected += rejected
        if not urls:  # many steps only admit, or fold outcomes
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
        """Merge rows from another crawl, after the URLs: those that waited there had been seen there."""
        for entry in entries:
            if not entry.rows:
                continue
            try:
                rows = unpack_rows(entry.rows)
            except RowsFormatError:
                self._reject(f"{entry.id}-rows", entry.rows)
                continue
            if rows.table == "copies" and rows.values is not None:
                self.copies += note_all(self._state.tables.copies, rows.values, self._state.tables.commit)
                continue
            if rows.table == "mirrors":
                rows = only_sampled(self._state.tables, rows)
                self.mirrors += count_new_mirrors(self._state.tables, rows)
            seen = len(self._state.tables.seen)
            rise = merge_rows(self._state.tables, rows)
            self.imported += len(self._state.tables.seen) - seen
            if rise is not None:
                self._state.raise_in_degrees(rise)

    def choose(
        self,
        source: BudgetSource,
        room: int,
        hot: Mapping[str, int],
        limits: PartitionLimits,
        away: Mapping[str, int] | None = None,
        extra_room: int | None = None,
    ) -> list[QueuedUrl]:
        """Raise in-degrees, place new URLs and due revisits, and choose up to `room` of all. See `Partition.step`."""
        state = self._state
        budgeting = Budgeting(state.tables, state.turns, source, limits.traps, limits.mirrors)
        rise = budgeting.place_arrivals(self.new, self._linked, self._due)
        if rise is not None:
            state.raise_in_degrees(rise)
        admission = Admission(
            state.turns, budgeting.refill, state.parked, state.already, hot, limits, away, source.withholds
        )
        chosen = admission.choose(room, room if extra_room is None else extra_room)
        budgeting.reread_for(len(chosen))
        self.trap_changes, self.mirror_changes = budgeting.trap_changes, budgeting.mirror_changes
        if chosen and source.counts_votes:
            return with_received(state.tables.votes, chosen)
        return chosen

    def outcome(self, batch: AdmitBatch | None) -> Step:
        """Return what the step did, given the batch of the chosen URLs; None if none were chosen."""
        found = (RowKind.COUNTED, self.counted), (RowKind.SHARED, self.shared)
        told = tuple((kind, rows) for kind, rows in found if rows)
        changes = self.trap_changes, self.mirror_changes
        return Step(batch, len(self.new), self.duplicates, self.rejected, *changes, told)

    def counted_in(self, manifest: Manifest) -> Manifest:
        """Return a manifest with what the step did added to its counts, and what it found to its rows to be sent."""
        return replace(
            manifest,
            folded_urls=manifest.folded_urls + len(self.new) + self.duplicates + self.put_away,
            duplicates=manifest.duplicates + self.duplicates,
            repeats=UNKNOWN if manifest.repeats == UNKNOWN else manifest.repeats + self.repeats,
            imported=manifest.imported + self.imported,
            rejected=manifest.rejected + self.rejected,
            exact_copies=manifest.exact_copies + self.copies.exact,
            near_copies=manifest.near_copies + self.copies.near,
            mirrors=manifest.mirrors + self.mirrors,
            untold=manifest.untold + self.found,
        )


def _together(some: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate the rows of a kind, of which most entries have none."""
    there = [rows for rows in some if len(rows)]
    return np.concatenate(there) if len(there) > 1 else there[0] if there else some[0]
