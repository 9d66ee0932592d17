"""What a partition's steps have found of near copies, until the partitions of these contents know it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.redisdb.running_time import FORGETTABLE_MS
from bigcrawl.scheduler.records.contents import FOUND_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.partition.committed import CommittedFiles


@dataclass(slots=True)
class _Sent:
    """Rows that were sent: when, by the running time of Redis, how many bytes, and those that Redis has refused."""

    sent_ms: int
    size: int
    refused: bytes


class FoundCopies:
    """Rows about near copies that a partition's steps have found, for the partitions of their contents.

    The manifest keeps them until they were sent so long ago that Redis cannot have forgotten them. If their owner dies
    before that, the next one sends them again, which changes nothing.

    Args:
        committed: has the rows that the steps have found.
        loss_ms: how much Redis may forget.
    """

    def __init__(self, committed: CommittedFiles, loss_ms: int = 0) -> None:
        self._committed = committed
        self._keep_ms = max(loss_ms, FORGETTABLE_MS)
        self._sent: deque[_Sent] = deque()
        self._sent_bytes = 0

    def __repr__(self) -> str:
        return f"<FoundCopies unsent={self.rows_unsent}>"

    @property
    def has_any(self) -> bool:
        """Whether the manifest keeps rows, sent or not."""
        return bool(self._committed.untold)

    @property
    def unsent(self) -> bytes:
        """The rows that Redis has not got from this owner yet, packed: those that it has refused come first."""
        return b"".join(sent.refused for sent in self._sent) + self._committed.untold[self._sent_bytes :]

    @property
    def rows_unsent(self) -> int:
        """How many rows Redis has not got from this owner yet."""
        refused = sum(len(sent.refused) for sent in self._sent)
        return (refused + len(self._committed.untold) - self._sent_bytes) // FOUND_BYTES

    def note_sent(self, rows: bytes, running_ms: int, refused: Callable[[bytes], bytes]) -> None:
        """Record that these rows were sent, which were all that was unsent. `refused` returns those that Redis refused.

        If all rows became unsent meanwhile, because Redis may have forgotten, they stay so.
        """
        if not self.unsent.startswith(rows):
            return
        for sent in self._sent:
            if sent.refused:
                rows = rows[len(sent.refused) :]
                sent.refused, sent.sent_ms = refused(sent.refused), running_ms
        if rows:
            self._sent.append(_Sent(running_ms, len(rows), refused(rows)))
            self._sent_bytes += len(rows)

    def send_again(self) -> None:
        """Redis may have forgotten: all rows that are still here are unsent."""
        self._sent.clear()
        self._sent_bytes = 0

    def forget_safe(self, running_ms: int) -> None:
        """Have the manifest forget what Redis keeps, by its running time."""
        while self._sent and not self._sent[0].refused and self._sent[0].sent_ms < running_ms - self._keep_ms:
            size = self._sent.popleft().size
            self._sent_bytes -= size
            self._committed.note_told(self._committed.untold[:size])
