"""How often what fails is tried while a node is behind (step 9): a decision, no I/O, no clock.

To try a dead host costs a node as much as to fetch a page of a healthy one. Where it has time for both, each has its
back-off and that is all. But a node whose CPU is full is behind: hosts that are due wait for it, for minutes, and what
is a long rest then for a host that fails? All would be tried as often as others are crawled. So then they have a
share of what the node takes, and whoever is beyond it rests as long again as hosts wait. Theirs is the share of hosts
that fail, of URLs that failed before, and of hosts whose pages fail one after the other.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.05
BEHIND_MS: Final = 2_000
NEWS_MS: Final = 1_000
TRIES_A_SECOND: Final = 1  # in any case: when nothing else is left, nothing else tells that the node is not behind
CREDIT_MAX: Final = 64
REST_MS_MAX: Final = 120_000
_WEIGHT: Final = 1 / 64  # of the last URL in the mean of how late URLs are taken


class FailingShare:
    """A node's count of what it takes."""

    def __init__(self) -> None:
        self._late_ms = 0.0
        self._credit = 0.0
        self._counted_ms = 0

    def __repr__(self) -> str:
        return f"<FailingShare late_ms={self._late_ms:.0f} credit={self._credit:.1f}>"

    def late_ms(self, now_ms: int) -> float:
        """How late URLs are taken, in the mean of some dozens; 0 when none was for a second: then nothing is late."""
        return self._late_ms if now_ms - self._counted_ms < NEWS_MS else 0.0

    def count_taken(self, late_ms: int, now_ms: int, *, fails: bool) -> int:
        """Count a URL that was just taken; return for how many ms it must rest, 0 if it may be tried now.

        Args:
            late_ms: how long after its host was due it was taken.
            now_ms: of any clock that goes on.
            fails: whether it is one of those that share.
        """
        # One host that was due a day ago, as after a pause, does not make a node late for all others.
        self._late_ms += (min(late_ms, REST_MS_MAX) - self._late_ms) * _WEIGHT
        self._credit = min(CREDIT_MAX, self._credit + TRIES_A_SECOND * (now_ms - self._counted_ms) / 1000)
        self._counted_ms = now_ms
        if fails and self._late_ms >= BEHIND_MS:
            if self._credit < 1:
                return min(REST_MS_MAX, round(2 * self._late_ms))
            self._credit -= 1
        self._credit = min(CREDIT_MAX, self._credit + SHARE)
        return 0
