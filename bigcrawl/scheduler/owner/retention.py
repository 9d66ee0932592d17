"""How long admit batches are kept on disk after Redis took them: it may forget, and they are offered again (step 8).

A Redis that restarts forgets its last second; one that a lagging replica takes the place of, as much as that was
behind. What an owner admitted in that time would be gone from both. So it is kept on disk as well: its text for
`BIGCRAWL_REDIS_LOSS_SECONDS`, its keys for ten times as long, so that URLs whose text is gone are at least not taken
for seen.
"""

from __future__ import annotations

from collections import deque

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
