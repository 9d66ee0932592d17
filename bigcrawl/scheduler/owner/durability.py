"""When a partition's files are forced to disk, and what Redis and the disk may then drop.

A restart of Redis loses its last second, and a failover the unreplicated writes. So that URLs admitted then are not
lost, admit batches stay on disk: their text for `BIGCRAWL_REDIS_LOSS_SECONDS` of Redis's running time, their keys ten
times as long. If a URL's text is gone, the URL at least does not count as seen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.committed import CommittedFiles
    from bigcrawl.scheduler.partition.stored_points import StoredPoints

FOLDED_URLS_MAX = 500  # since the last durable manifest, about 50 KB of the inbox in Redis
PERSISTED_MS = 2_000  # after this time, Redis with AOF everysec has persisted its writes
KEYS_TIMES = 10
MARKS_PER_LOSS = 4


class BatchRetention:
    """Finds the admit batches that Redis can no longer forget, by its running time since they became durable."""

    def __init__(self, loss_ms: int) -> None:
        self._loss_ms = loss_ms
        self._marks: deque[tuple[int, int]] = deque()  # (running ms, last batch durable since)

    def record_batch(self, running_ms: int, batch_number: int) -> None:
        marks, oldest_ms = self._marks, running_ms - KEYS_TIMES * self._loss_ms
        while len(marks) > 1 and marks[1][0] <= oldest_ms:
            marks.popleft()
        if not marks or running_ms - marks[-1][0] >= self._loss_ms // MARKS_PER_LOSS:
            marks.append((running_ms, batch_number))

    def text_upto(self, running_ms: int) -> int:
        return self._last_batch_at(running_ms - self._loss_ms)

    def keys_upto(self, running_ms: int) -> int:
        return self._last_batch_at(running_ms - KEYS_TIMES * self._loss_ms)

    def _last_batch_at(self, then_ms: int) -> int:
        return max((number for marked_ms, number in self._marks if marked_ms <= then_ms), default=0)


class Durability:
    """Decides when the files of one partition are made durable, and what may be dropped then.

    `points` are the copies in the store, `forced_ms` is when files were last forced to disk (monotonic), and
    `checkpoint` is the operator's last order that was obeyed.
    """

    def __init__(
        self, committed: CommittedFiles, loss_ms: int, now_ms: int, points: StoredPoints | None = None
    ) -> None:
        self._committed = committed
        self.points = points
        self._retention = BatchRetention(loss_ms)
        self.forced_ms = now_ms
        self.checkpoint = 0
        self._trim: tuple[str, int] = (NO_INBOX_ID, 0)
        self._owes_trim = False
        self._folded = committed.manifest.folded_urls

    @property
    def trim(self) -> tuple[str, int]:
        """The last inbox entry and admit batch that Redis may drop."""
        return self._trim if self.points is None else self.points.trim

    def due_ms(self, durable_ms: int, checkpoint: int = 0) -> int:
        """Return when to force the files to disk, or to trim Redis for the last time; or `NEVER_MS`.

        Much folding makes it due sooner, to trim the inbox in Redis. A higher `checkpoint` makes it due once Redis has
        persisted the admissions before the last point.
        """
        if checkpoint > self.checkpoint:
            return self.forced_ms + PERSISTED_MS
        if not (self._committed.has_undurable_changes or self._owes_trim):
            return NEVER_MS
        if self._committed.manifest.folded_urls - self._folded >= FOLDED_URLS_MAX:
            durable_ms = min(durable_ms, PERSISTED_MS)
        return self.forced_ms + durable_ms

    def make_durable(self, now_ms: int, running_ms: int, checkpoint: int = 0) -> None:
        """Force the partition's files to disk, and allow a trim to what was durable before. Runs in a thread."""
        committed = self._committed
        before = (committed.durable_inbox_id, committed.durable_batch_number)
        kept = before if self.points is None else self.points.trim
        committed.forget_text(min(kept[1], self._retention.text_upto(running_ms)))
        committed.forget_batches(min(kept[1], self._retention.keys_upto(running_ms)))
        committed.make_durable()
        self._retention.record_batch(running_ms, committed.durable_batch_number)
        self._owes_trim = (committed.durable_inbox_id, committed.durable_batch_number) != before
        self._trim = before
        self._folded = committed.manifest.folded_urls
        self.forced_ms = now_ms
        self.checkpoint = max(self.checkpoint, checkpoint)
