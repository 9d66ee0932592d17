"""When a partition's files are forced to the disk, and what Redis and the disk may drop then (step 6).

Redis may forget. One that restarts forgets its last second; one that a lagging replica takes the place of, as much as
that was behind. What an owner admitted in that time would be gone from both, so admit batches are kept on disk after
Redis took them, and offered again: their text for `BIGCRAWL_REDIS_LOSS_SECONDS`, their keys for ten times as long, so
that URLs whose text is gone are at least not taken for seen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.partition import Partition

FOLDED_URLS_MAX = 500  # folded since the last durable manifest: some 50 KB of a partition's inbox in Redis
PERSISTED_MS = 2_000  # in that time a Redis with AOF everysec has persisted what it was told
KEYS_TIMES = 10
MARKS_PER_LOSS = 4  # a mark is not made more often: an owner has some forty


class Retention:
    """Which admit batches of a partition were durable so long ago that Redis will not forget them any more."""

    def __init__(self, loss_ms: int) -> None:
        self._loss_ms = loss_ms
        self._marks: deque[tuple[int, int]] = (
            deque()
        )  # since when (monotonic ms) batches up to which number are durable

    def __repr__(self) -> str:
        return f"<Retention {self._loss_ms} ms, marks={len(self._marks)}>"

    def note(self, now_ms: int, batch_number: int) -> None:
        """Batches up to this number are durable now."""
        marks, oldest_ms = self._marks, now_ms - KEYS_TIMES * self._loss_ms
        while len(marks) > 1 and marks[1][0] <= oldest_ms:
            marks.popleft()
        if not marks or now_ms - marks[-1][0] >= self._loss_ms // MARKS_PER_LOSS:
            marks.append((now_ms, batch_number))

    def text_upto(self, now_ms: int) -> int:
        """The last batch whose text is not needed any more."""
        return self._upto(now_ms - self._loss_ms)

    def keys_upto(self, now_ms: int) -> int:
        """The last batch of which nothing is needed any more."""
        return self._upto(now_ms - KEYS_TIMES * self._loss_ms)

    def _upto(self, then_ms: int) -> int:
        return max((number for marked_ms, number in self._marks if marked_ms <= then_ms), default=0)


class Durability:
    """The durable points of one partition.

    Attributes:
        forced_ms: when the last one was made, monotonic.
        trim: what Redis may drop: inbox entries up to this id, the keys of admit batches up to this number.
    """

    def __init__(self, disk: Partition, loss_ms: int, now_ms: int) -> None:
        self._disk = disk
        self._retention = Retention(loss_ms)
        self.forced_ms = now_ms
        self.trim: tuple[str, int] = ("0-0", 0)
        self._owes_trim = False
        self._folded = disk.folded_urls  # at the last point

    def __repr__(self) -> str:
        return f"<Durability forced_ms={self.forced_ms} trim={self.trim}>"

    def is_due(self, now_ms: int, durable_ms: int) -> bool:
        """Whether the files should be forced to the disk, or trimming is owed for the last time they were.

        Sooner when much was folded since: the inbox is trimmed behind it, and Redis must stay small.
        """
        if self._disk.folded_urls - self._folded >= FOLDED_URLS_MAX:
            durable_ms = min(durable_ms, PERSISTED_MS)
        return now_ms - self.forced_ms >= durable_ms and (self._disk.has_undurable_changes or self._owes_trim)

    def force(self, now_ms: int) -> None:
        """Force the partition's files to the disk; called in a worker thread.

        What the round before made durable may be trimmed now: Redis has had the time to persist
        everything that was admitted before it.
        """
        disk = self._disk
        before = (disk.durable_inbox_id, disk.durable_batch_number)
        disk.forget_text(min(before[1], self._retention.text_upto(now_ms)))
        disk.forget_batches(min(before[1], self._retention.keys_upto(now_ms)))
        disk.make_durable()
        self._retention.note(now_ms, disk.durable_batch_number)
        self._owes_trim = (disk.durable_inbox_id, disk.durable_batch_number) != before
        self.trim = before
        self._folded = disk.folded_urls
        self.forced_ms = now_ms
