"""Limits a late node's tries of failing hosts to a share of the taken URLs: each costs as much as a page."""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.05
BEHIND_MS: Final = 2_000
NEWS_MS: Final = 1_000
TRIES_A_SECOND: Final = 1  # always: alone, they still show that the node is not behind
CREDIT_MAX: Final = 64
REST_MS_MAX: Final = 120_000
_WEIGHT: Final = 1 / 64


class FailingShare:
    def __init__(self) -> None:
        self._late_ms = 0.0
        self._credit = 0.0
        self._counted_ms = 0

    def __repr__(self) -> str:
        return f"<FailingShare late_ms={self._late_ms:.0f} credit={self._credit:.1f}>"

    def late_ms(self, now_ms: int) -> float:
        return self._late_ms if now_ms - self._counted_ms < NEWS_MS else 0.0

    def count_taken(self, late_ms: int, now_ms: int, *, fails: bool) -> int:
        """Count a taken URL. Return its rest in ms, 0 for none; `fails` means that the share limits it."""
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
