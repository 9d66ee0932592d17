"""How often failing hosts are tried while a node is behind (step 9): a decision, no I/O, no clock.

Trying a dead host costs a node as much as fetching a page of a healthy one. While it has time for both, back-off is
enough. But a node with a busy CPU is behind: due hosts wait for it, for minutes, and then a failing host would be tried
as often as a healthy one is crawled. So failing hosts get a share of what the node takes; a URL beyond the share rests
twice as long as hosts wait. The share is for hosts that fail, for URLs that have failed before, and for hosts whose
pages fail one after the other.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.05
BEHIND_MS: Final = 2_000
NEWS_MS: Final = 1_000
TRIES_A_SECOND: Final = 1  # always; when nothing else is left, only these show that the node is not behind
CREDIT_MAX: Final = 64
REST_MS_MAX: Final = 120_000
_WEIGHT: Final = 1 / 64  # of the last URL in the mean lateness


class FailingShare:
    """A node's count of what it takes."""

    def __init__(self) -> None:
        self._late_ms = 0.0
        self._credit = 0.0
        self._counted_ms = 0

    def __repr__(self) -> str:
        return f"<FailingShare late_ms={self._late_ms:.0f} credit={self._credit:.1f}>"

    def late_ms(self, now_ms: int) -> float:
        """How late URLs are taken, as a mean over some dozens; 0 if none was taken for a second."""
        return self._late_ms if now_ms - self._counted_ms < NEWS_MS else 0.0

    def count_taken(self, late_ms: int, now_ms: int, *, fails: bool) -> int:
        """Count a URL that was just taken. Return how many ms it must rest, 0 if it may be tried now.

        Args:
            late_ms: how late it was taken, after its host was due.
            now_ms: of any clock that does not go back.
            fails: whether the share is for it.
        """
        # A host that was due a day ago, as after a pause, must not make the node late for all others.
        self._late_ms += (min(late_ms, REST_MS_MAX) - self._late_ms) * _WEIGHT
        self._credit = min(CREDIT_MAX, self._credit + TRIES_A_SECOND * (now_ms - self._counted_ms) / 1000)
        self._counted_ms = now_ms
        if fails and self._late_ms >= BEHIND_MS:
            if self._credit < 1:
                return min(REST_MS_MAX, round(2 * self._late_ms))
            self._credit -= 1
        self._credit = min(CREDIT_MAX, self._credit + SHARE)
        return 0
