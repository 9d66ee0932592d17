"""Limits look-ups of new names in a PLD by its budget, so that a link farm cannot flood the DNS (IRLbot §1.2 b)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

PLDS_KEPT = 20_000
"""PLDs remembered. A forgotten one starts with a full minute's look-ups."""

TURNS_KEPT = 100_000
MINUTE_MS = 60_000


class LookupPace:
    """Decides when an unknown host may be looked up. Each node has its own, as it has all hosts of its PLDs."""

    def __init__(self, names_a_minute: int) -> None:
        self._names = names_a_minute
        # When the PLD's look-ups so far will be used up, and the share they were counted with.
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._turns_ms: OrderedDict[str, float] = OrderedDict()

    def __repr__(self) -> str:
        return f"LookupPace({len(self._used)} PLDs, {len(self._turns_ms)} hosts wait)"

    def free_share(self, pld: str, now_ms: int) -> float | None:
        """Return the PLD's last known share if it allows a look-up now; None if the current share is needed."""
        end_ms, share = self._used.get(pld, (0.0, 1.0))
        return share if end_ms <= now_ms + MINUTE_MS - MINUTE_MS / (self._names * share) else None

    def wait_ms(self, pld: str, host: str, share: float, now_ms: int) -> int:
        """Count a look-up of the host and return 0, or the wait for its turn.

        `share` is its PLD's budget / the least budget.
        """
        turn_ms = self._turns_ms.get(host)
        if turn_ms is None:
            each_ms = MINUTE_MS / (self._names * share)
            before_ms, before = self._used.get(pld, (0.0, share))
            end_ms = now_ms + max(0.0, before_ms - now_ms) * before / share + each_ms
            turn_ms = end_ms - max(MINUTE_MS, each_ms)
            self._used[pld] = (end_ms, share)
            _drop_oldest(self._used, pld, PLDS_KEPT)
        if turn_ms <= now_ms:
            self._turns_ms.pop(host, None)
            return 0
        self._turns_ms[host] = turn_ms
        _drop_oldest(self._turns_ms, host, TURNS_KEPT)
        return int(turn_ms - now_ms) + 1


def _drop_oldest(kept: OrderedDict[str, Any], latest: str, most: int) -> None:
    kept.move_to_end(latest)
    if len(kept) > most:
        kept.popitem(last=False)
