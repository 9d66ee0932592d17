"""What the store has of one partition, and what may therefore be trimmed.

With a store, only a point in the store is durable: the next owner may be on another machine. The inbox is trimmed to
the point before the last one, so that either of the two can be started from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.copies import PartitionCopy
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.store.series import PointSeries

# The inbox entries that the store does not have stay in Redis, with some 22 bytes a URL. Rows about contents count too.
AHEAD_URLS_SOON = 10_000  # folded since the last point: the next one is due soon
AHEAD_URLS_MAX = 50_000  # the partition reads no more of its inbox, so that senders notice and wait
SOON_MS = 5_000
ORDERED_MS = 2_000  # between two points while an operator waits for one


class StoredPoints:
    """The points of one partition in one epoch.

    Attributes:
        trim: what Redis may drop: inbox entries up to this id, and the keys of admit batches up to this number.
        tried_ms: when a point was last begun, on the monotonic clock.
        checkpoint: the last order for a checkpoint that the store's point was begun after; 0 before any.
    """

    def __init__(self, disk: Partition, series: PointSeries, now_ms: int) -> None:
        """Begin an epoch: `put_first` comes before anything is admitted."""
        self._disk = disk
        self._series = series
        self.trim: tuple[str, int] = (NO_INBOX_ID, 0)
        self._last: tuple[str, int] = self.trim
        self._number = 0  # of the last stored manifest
        self._folded = self._folded_at_begin = disk.folded_ever
        self.tried_ms = now_ms
        self.checkpoint = 0
        self._asked = 0  # the order that the point under way was begun after

    def __repr__(self) -> str:
        return f"<StoredPoints {self._series!r} number={self._number} trim={self.trim}>"

    @property
    def is_far_behind(self) -> bool:
        """Whether so much was folded since the last point that the inbox must wait."""
        return self._ahead >= AHEAD_URLS_MAX

    @property
    def _ahead(self) -> int:
        return self._disk.folded_ever - self._folded

    def is_due(self, now_ms: int, interval_ms: int, checkpoint: int = 0) -> bool:
        """Whether to make a point: something is new, and the time has come, sooner if much was folded.

        An operator's order `checkpoint`, a number that grows, shortens the time until the store has a point.
        """
        if self._disk.manifest.number == self._number:
            return False
        if checkpoint > self.checkpoint:
            interval_ms = min(interval_ms, ORDERED_MS)
        wait_ms = min(interval_ms, SOON_MS) if self._ahead >= AHEAD_URLS_SOON else interval_ms
        return now_ms - self.tried_ms >= wait_ms

    def note_order(self, checkpoint: int) -> bool:
        """If the store has all that is committed, this order is carried out. True if that is new."""
        if checkpoint <= self.checkpoint or self._disk.manifest.number != self._number:
            return False
        self.checkpoint = checkpoint
        return True

    def begin(self, now_ms: int, checkpoint: int = 0) -> PartitionCopy:
        """Begin a point, after the order `checkpoint`. Runs in the thread of the files.

        `end` must follow, whatever happens.

        Raises:
            CorruptionError: a retained admit batch is damaged.
            TransientStoreError: the disk failed.
        """
        self.tried_ms, self._asked, self._folded_at_begin = now_ms, checkpoint, self._disk.folded_ever
        return self._disk.committed.lend_copy()

    def put(self, copy: PartitionCopy) -> None:
        """Write the point to the store. Runs in a thread of the store.

        Raises:
            CorruptionError: a file is shorter than its committed length.
            TransientStoreError: store or disk failed. The last point is still whole.
        """
        self._series.put(copy.epoch, copy.number, copy.log, copy.lengths, copy.read)

    def note_put(self, copy: PartitionCopy) -> None:
        """Record that the point is in the store."""
        self.trim, self._last = self._last, (copy.inbox_id, copy.batch_number)
        self._number, self._folded = copy.number, self._folded_at_begin
        self.checkpoint = max(self.checkpoint, self._asked)

    def end(self) -> None:
        """The point is stored, or has failed."""
        self._disk.committed.end_copy()

    def clear(self) -> None:
        """Delete objects of older points, once Redis has trimmed to `trim` in this epoch. In a thread of the store.

        Nobody starts from an older point from then on: who claims the partition later finds this epoch's.
        """
        self._series.clear()
