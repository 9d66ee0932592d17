"""When a partition's files are forced to the disk, and what Redis and the disk may drop afterwards (step 6).

Redis may forget. A restart loses its last second, and a failover to a replica loses what the replica had not received.
URLs admitted in that time would then be neither in Redis nor on disk. So admit batches stay on disk after Redis took
them, and can be offered again: their text for `BIGCRAWL_REDIS_LOSS_SECONDS` of the running time of Redis, their keys
ten times as long. A URL whose text is gone is at least not taken for seen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.committed import CommittedFiles
    from bigcrawl.scheduler.partition.stored_points import StoredPoints

FOLDED_URLS_MAX = 500  # folded since the last durable manifest, about 50 KB of the inbox in Redis
PERSISTED_MS = 2_000  # a Redis with AOF everysec has persisted its writes after this time
KEYS_TIMES = 10
MARKS_PER_LOSS = 4  # marks made while one loss may last, so that an owner has about forty


class Retention:
    """Finds the admit batches that Redis can no longer forget, by its running time since they were durable."""

    def __init__(self, loss_ms: int) -> None:
        self._loss_ms = loss_ms
        self._marks: deque[tuple[int, int]] = deque()  # (running ms, batches up to this number are durable since)

    def __repr__(self) -> str:
        return f"<Retention {self._loss_ms} ms, marks={len(self._marks)}>"

    def note(self, running_ms: int, batch_number: int) -> None:
        """Record that batches up to this number are durable from now on."""
        marks, oldest_ms = self._marks, running_ms - KEYS_TIMES * self._loss_ms
        while len(marks) > 1 and marks[1][0] <= oldest_ms:
            marks.popleft()
        if not marks or running_ms - marks[-1][0] >= self._loss_ms // MARKS_PER_LOSS:
            marks.append((running_ms, batch_number))

    def text_upto(self, running_ms: int) -> int:
        """Return the number of the last batch whose text is no longer needed."""
        return self._upto(running_ms - self._loss_ms)

    def keys_upto(self, running_ms: int) -> int:
        """Return the number of the last batch whose keys are no longer needed either."""
        return self._upto(running_ms - KEYS_TIMES * self._loss_ms)

    def _upto(self, then_ms: int) -> int:
        return max((number for marked_ms, number in self._marks if marked_ms <= then_ms), default=0)


class Durability:
    """The durable points of one partition.

    Attributes:
        forced_ms: when the last one was made, on the monotonic clock.
        checkpoint: the number of the last operator's order that a point has obeyed, see `due_ms`; 0 before any.
    """

    def __init__(
        self, committed: CommittedFiles, loss_ms: int, now_ms: int, points: StoredPoints | None = None
    ) -> None:
        """Begin in a new epoch. With `points`, Redis is trimmed only up to what the store holds."""
        self._committed = committed
        self._points = points
        self._retention = Retention(loss_ms)
        self.forced_ms = now_ms
        self.checkpoint = 0
        self._trim: tuple[str, int] = (NO_INBOX_ID, 0)
        self._owes_trim = False
        self._folded = committed.manifest.folded_urls  # URLs folded at the last durable point

    def __repr__(self) -> str:
        return f"<Durability forced_ms={self.forced_ms} trim={self.trim}>"

    @property
    def trim(self) -> tuple[str, int]:
        """What Redis may drop: inbox entries up to this id, and the keys of admit batches up to this number."""
        return self._trim if self._points is None else self._points.trim

    def due_ms(self, durable_ms: int, checkpoint: int = 0) -> int:
        """When to force the files to the disk, or to trim Redis for the last time they were; `NEVER_MS` if neither.

        It is due sooner if much was folded since: the inbox is only trimmed afterwards, and Redis must stay small. An
        operator's order `checkpoint`, a number that grows, makes it due as soon as Redis has persisted what was
        admitted before the last point, which is trimmed then.
        """
        if checkpoint > self.checkpoint:
            return self.forced_ms + PERSISTED_MS
        if not (self._committed.has_undurable_changes or self._owes_trim):
            return NEVER_MS
        if self._committed.manifest.folded_urls - self._folded >= FOLDED_URLS_MAX:
            durable_ms = min(durable_ms, PERSISTED_MS)
        return self.forced_ms + durable_ms

    def force(self, now_ms: int, running_ms: int, checkpoint: int = 0) -> None:
        """Force the partition's files to the disk, after the order `checkpoint`. Runs in a worker thread.

        What the point before made durable may be trimmed now: Redis has had time to persist everything that was
        admitted before it.
        """
        committed = self._committed
        before = (committed.durable_inbox_id, committed.durable_batch_number)
        kept = before if self._points is None else self._points.trim
        committed.forget_text(min(kept[1], self._retention.text_upto(running_ms)))
        committed.forget_batches(min(kept[1], self._retention.keys_upto(running_ms)))
        committed.make_durable()
        self._retention.note(running_ms, committed.durable_batch_number)
        self._owes_trim = (committed.durable_inbox_id, committed.durable_batch_number) != before
        self._trim = before
        self._folded = committed.manifest.folded_urls
        self.forced_ms = now_ms
        self.checkpoint = max(self.checkpoint, checkpoint)
