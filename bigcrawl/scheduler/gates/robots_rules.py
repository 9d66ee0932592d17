"""Robots rules in memory, bounded, the least recently used out first; equal rules share one object."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.politeness.robots_policy import RobotsRules

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.politeness.robots_policy import RobotsVerdict

RULES_BYTES_MAX: Final = 48 << 20
"""100,000 hosts that share a few files, or 20,000 with a file each."""

ENTRY_BYTES, LINE_BYTES, CHAR_BYTES = 400, 250, 4


@dataclass(frozen=True, slots=True)
class KnownRules:
    """Rules of an authority until they expire (monotonic); then they are its last good copy.

    Attributes:
        reason: rules whose reason is "unreachable" are not a copy of a file.
        attempts: fetches in a row without an answer.
        alone: the number of the last of these during which the host itself did not fail.
    """

    rules: RobotsRules
    expires_ms: int
    reason: str
    attempts: int = 0
    alone: int = 0


IGNORED: Final = KnownRules(RobotsRules.allow_all(), 1 << 62, "ignored")


class RememberedRules:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, KnownRules] = OrderedDict()
        self._size = 0
        self._users: dict[RobotsRules, tuple[RobotsRules, int]] = {}

    def __repr__(self) -> str:
        return f"<RememberedRules {len(self._known)}>"

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, authority: str) -> bool:
        return authority in self._known

    def get(self, authority: str) -> KnownRules | None:
        return self._known.get(authority)

    def unexpired_rules(self, authority: str) -> KnownRules | None:
        known = self._known.get(authority)
        if known is None or known.expires_ms <= self._clock.monotonic_ms():
            return None
        self._known.move_to_end(authority)
        return known

    def keep(self, authority: str, verdict: RobotsVerdict, attempts: int = 0, alone: int = 0) -> KnownRules:
        expires_ms = self._clock.monotonic_ms() + verdict.expires_in_ms
        known = KnownRules(self._share_equal_rules(verdict.rules), expires_ms, verdict.reason, attempts, alone)
        if before := self._known.pop(authority, None):
            self._drop_rules(before.rules)
        self._known[authority] = known
        while self._size > RULES_BYTES_MAX and len(self._known) > 1:
            self._drop_rules(self._known.popitem(last=False)[1].rules)
        return known

    def _share_equal_rules(self, rules: RobotsRules) -> RobotsRules:
        alike, users = self._users.get(rules, (rules, 0))
        self._users[alike] = alike, users + 1
        self._size += ENTRY_BYTES + (0 if users else _size_of(alike))
        return alike

    def _drop_rules(self, rules: RobotsRules) -> None:
        alike, users = self._users.pop(rules)
        if users > 1:
            self._users[alike] = alike, users - 1
        self._size -= ENTRY_BYTES + (0 if users > 1 else _size_of(alike))


def _size_of(rules: RobotsRules) -> int:
    return LINE_BYTES * len(rules.lines) + CHAR_BYTES * rules.chars
