"""What a partition's steps have found of near copies, until the partitions of these contents know it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.held_urls import KEEP_ENDED_MS

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.partition import Partition


class FoundCopies:
    """Rows about near copies that a partition's steps have found, for the partitions of their contents.

    The manifest keeps them until they were sent and a Redis that forgets its last seconds has them. If their owner dies
    before that, the next one sends them again, which changes nothing.
    """

    def __init__(self, disk: Partition) -> None:
        self._disk = disk
        self._sent: deque[tuple[int, bytes]] = deque()
        self._sent_bytes = 0

    def __repr__(self) -> str:
        return f"<FoundCopies unsent={len(self.unsent)}>"

    @property
    def has_any(self) -> bool:
        """Whether the manifest keeps rows, sent or not."""
        return bool(self._disk.untold)

    @property
    def unsent(self) -> bytes:
        """The rows that this owner has not sent yet, packed."""
        return self._disk.untold[self._sent_bytes :]

    def note_sent(self, rows: bytes, now_ms: int) -> None:
        """Redis has these rows, the first that were unsent."""
        self._sent.append((now_ms, rows))
        self._sent_bytes += len(rows)

    def forget_old(self, now_ms: int) -> None:
        """Have the manifest forget what was sent so long ago that Redis keeps it."""
        while self._sent and self._sent[0][0] < now_ms - KEEP_ENDED_MS:
            rows = self._sent.popleft()[1]
            self._sent_bytes -= len(rows)
            self._disk.note_told(rows)
