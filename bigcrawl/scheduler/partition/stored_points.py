"""The points of a partition in the store. Redis is trimmed to the last but one, so that either serves a new owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.committed import PartitionCopy
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.store.series import PointSeries

# Inbox entries that the store does not have stay in Redis, with some 22 bytes a URL.
AHEAD_URLS_SOON = 10_000  # URLs folded since the last point: the next one is due soon
AHEAD_URLS_MAX = 50_000  # the partition stops reading its inbox, so that senders notice and wait
SOON_MS = 5_000
ORDERED_MS = 2_000  # between two points while an operator waits for one


class StoredPoints:
    """The points of one partition in one epoch.

    `trim` says up to which inbox entry and admit batch Redis may be trimmed. `checkpoint` is the last operator's order
    that was carried out; 0 for none.
    """

    def __init__(self, disk: Partition, series: PointSeries, now_ms: int) -> None:
        self._disk = disk
        self._series = series
        self.trim: tuple[str, int] = (NO_INBOX_ID, 0)
        self._last: tuple[str, int] = self.trim
        self._number = 0
        self._folded = self._folded_at_begin = disk.folded_ever
        self.tried_ms = now_ms
        self.checkpoint = 0
        self._asked = 0

    @property
    def is_far_behind(self) -> bool:
        return self._entries_ahead >= AHEAD_URLS_MAX

    @property
    def _entries_ahead(self) -> int:
        return self._disk.folded_ever - self._folded

    def is_due(self, now_ms: int, interval_ms: int, checkpoint: int = 0) -> bool:
        if self._disk.manifest.number == self._number:
            return False
        if checkpoint > self.checkpoint:
            interval_ms = min(interval_ms, ORDERED_MS)
        wait_ms = min(interval_ms, SOON_MS) if self._entries_ahead >= AHEAD_URLS_SOON else interval_ms
        return now_ms - self.tried_ms >= wait_ms

    def record_order(self, checkpoint: int) -> bool:
        """Record an order as carried out if the store has the committed state. Return whether that is new."""
        if checkpoint <= self.checkpoint or self._disk.manifest.number != self._number:
            return False
        self.checkpoint = checkpoint
        return True

    def begin(self, now_ms: int, checkpoint: int = 0) -> PartitionCopy:
        self.tried_ms, self._asked, self._folded_at_begin = now_ms, checkpoint, self._disk.folded_ever
        return self._disk.committed.lend_copy()

    def put(self, copy: PartitionCopy) -> None:
        """Write the point to the store, in a thread of the store; after a failure the last point is still whole."""
        self._series.put(copy.epoch, copy.number, copy.log, copy.lengths, copy.read)

    def record_put(self, copy: PartitionCopy) -> None:
        self.trim, self._last = self._last, (copy.inbox_id, copy.batch_number)
        self._number, self._folded = copy.number, self._folded_at_begin
        self.checkpoint = max(self.checkpoint, self._asked)

    def end(self) -> None:
        self._disk.committed.end_copy()

    def clear(self) -> None:
        """Delete objects of older points, in a thread of the store, once Redis has trimmed to `trim` in this epoch."""
        self._series.clear()
