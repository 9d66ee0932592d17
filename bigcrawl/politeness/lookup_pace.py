"""How fast new names of one pay-level domain are looked up: no domain may keep the name servers to itself.

A farm makes up names faster than they can be resolved (IRLbot §1.2 b). Each PLD has a number of look-ups a minute,
times what its budget is worth; those of a minute may come at once. Who must wait is given a time of its own, so that
it comes back once, and not with all others for the next place.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

PLDS_KEPT = 20_000
"""Of the latest met; one that is forgotten begins with a whole minute's look-ups. More than are met in a minute."""

TURNS_KEPT = 100_000
"""Hosts that have been told when to come; one that is forgotten is told again."""

MINUTE_MS = 60_000


class LookupPace:
    """When a host that is not known may be looked up; pure, for one node: a PLD's hosts are on one."""

    def __init__(self, names_a_minute: int) -> None:
        """Let pass so many names a minute of a PLD whose share is 1."""
        self._names = names_a_minute
        # When the PLD's look-ups so far are used up, and by which share.
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._turns_ms: OrderedDict[str, float] = OrderedDict()  # when a host was told to come

    def __repr__(self) -> str:
        return f"LookupPace({len(self._used)} PLDs, {len(self._turns_ms)} hosts wait)"

    def free_share(self, pld: str, now_ms: int) -> float | None:
        """The share by which a host of the PLD could be looked up now; None: the PLD's share is to be asked for."""
        end_ms, share = self._used.get(pld, (0.0, 1.0))
        return share if end_ms <= now_ms + MINUTE_MS - MINUTE_MS / (self._names * share) else None

    def wait_ms(self, pld: str, host: str, share: float, now_ms: int) -> int:
        """Return 0 and count a look-up of the host, or how long it is until its turn.

        Args:
            pld: its pay-level domain.
            host: asked for again, it has the turn that it was given.
            share: of the PLD, above 0: its budget over the least.
            now_ms: monotonic.
        """
        turn_ms = self._turns_ms.get(host)
        if turn_ms is None:
            each_ms = MINUTE_MS / (self._names * share)
            before_ms, before = self._used.get(pld, (0.0, share))
            end_ms = now_ms + max(0.0, before_ms - now_ms) * before / share + each_ms
            turn_ms = end_ms - max(MINUTE_MS, each_ms)
            self._used[pld] = (end_ms, share)
            _trim(self._used, pld, PLDS_KEPT)
        if turn_ms <= now_ms:
            self._turns_ms.pop(host, None)
            return 0
        self._turns_ms[host] = turn_ms
        _trim(self._turns_ms, host, TURNS_KEPT)
        return int(turn_ms - now_ms) + 1


def _trim(kept: OrderedDict[str, Any], latest: str, most: int) -> None:
    kept.move_to_end(latest)
    if len(kept) > most:
        kept.popitem(last=False)
