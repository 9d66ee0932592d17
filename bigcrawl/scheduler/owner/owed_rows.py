"""Rows that a partition owes to others, until they have arrived."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.redisdb.running_time import FORGETTABLE_MS
from bigcrawl.scheduler.records.observed import rows_owed

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.partition.committed import CommittedFiles


@dataclass(slots=True)
class _SentRows:
    sent_ms: int
    size: int
    refused: bytes


class OwedRows:
    """Rows from a partition's steps for others; the manifest keeps them until Redis can no longer forget them."""

    def __init__(self, committed: CommittedFiles, loss_ms: int = 0) -> None:
        self._committed = committed
        self._keep_ms = max(loss_ms, FORGETTABLE_MS)
        self._sent: deque[_SentRows] = deque()
        self._sent_bytes = 0

    @property
    def has_any(self) -> bool:
        return bool(self._committed.unsent_rows)

    @property
    def unsent_rows(self) -> bytes:
        """The packed rows that Redis has not accepted, refused ones first."""
        return b"".join(sent.refused for sent in self._sent) + self._committed.unsent_rows[self._sent_bytes :]

    @property
    def rows_unsent(self) -> int:
        refused = sum(len(sent.refused) for sent in self._sent)
        return rows_owed(refused + len(self._committed.unsent_rows) - self._sent_bytes)

    def record_sent(self, rows: bytes, running_ms: int, refused: Callable[[bytes], bytes]) -> None:
        """Record that all unsent rows were sent, unless all became unsent again meanwhile.

        `refused` returns those of given rows that were refused.
        """
        if not self.unsent_rows.startswith(rows):
            return
        for sent in self._sent:
            if sent.refused:
                rows = rows[len(sent.refused) :]
                sent.refused, sent.sent_ms = refused(sent.refused), running_ms
        if rows:
            self._sent.append(_SentRows(running_ms, len(rows), refused(rows)))
            self._sent_bytes += len(rows)

    def send_again(self) -> None:
        self._sent.clear()
        self._sent_bytes = 0

    def forget_safe(self, running_ms: int) -> None:
        while self._sent and not self._sent[0].refused and self._sent[0].sent_ms < running_ms - self._keep_ms:
            size = self._sent.popleft().size
            self._sent_bytes -= size
            self._committed.record_delivered(self._committed.unsent_rows[:size])
