"""A URL that a node has taken and not yet acknowledged (steps 9 to 14 of a URL's life).

Its phases are `at_gates`, `in_engine` and `held`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.at_gates import Stage
from bigcrawl.scheduler.records.in_engine import InEngine
from bigcrawl.scheduler.records.queued_url import NO_MORE_S, TimedUrl

__all__ = ["HeldUrl", "Stage"]

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import EndedUrl


@dataclass(slots=True, eq=False)
class HeldUrl(InEngine):
    """A taken URL. Any code may read its fields; only its methods write them."""

    is_settled: bool = False
    again: TimedUrl | None = None
    detail: int = 0
    end: EndedUrl | None = None
    offered_at_end: int = 0  # the outbox's count; URLs up to it must be safe before the acknowledgement
    pages_at_end: int = 0  # the page storage's count; likewise
    end_rows: bytes = b""  # sent to the inbox with its end, without its revisit
    is_end_sent: bool = False  # Redis may have its end
    is_end_confirmed: bool = False

    @property
    def owes_rows(self) -> bool:
        return bool(self.rows) and self.end is not None and not self.end.member

    @property
    def comes_again(self) -> bool:
        return self.again is not None and self.again.due_s != NO_MORE_S

    def record_detail(self, detail: int) -> None:
        """Record the detail of the outcome: the line of robots.txt, or the filter rule, that drops the URL; or 0."""
        self.detail = detail

    def record_retry(self, again: TimedUrl | None) -> None:
        self.is_settled = True
        self.again = again

    def record_end(self, end: EndedUrl, *, offered: int, pages: int) -> None:
        self.stage = Stage.ENDED
        self.end = end
        self.offered_at_end = offered
        self.pages_at_end = pages

    def record_rows_offered(self, offered: int) -> None:
        self.record_rows(())
        self.offered_at_end = offered

    def record_end_sent(self, rows: bytes) -> None:
        self.end_rows = rows
        self.is_end_sent = True

    def confirm_end(self) -> None:
        self.is_end_confirmed = True
