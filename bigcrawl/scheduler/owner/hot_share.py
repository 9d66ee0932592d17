"""How many URLs of a host are hot while others wait (step 7): as many as it is asked for in 25 seconds, no more.

The hot set has a set number of URLs, and a host that rests for half a minute needs one of them, not twenty-five. So the
longer hosts rest, the fewer URLs each has there, and the more hosts: about BIGCRAWL_HOT_URLS / share of them, which
gives BIGCRAWL_HOT_URLS / 25 pages a second, and with one URL each what so many hosts allow.
Source: PolyBot §3.5 (more hosts than speed times delay). Differs: what is counted is URLs, which is what memory holds.

How much of the hot set may be extra URLs, beyond their PLDs' budgets, follows from whether the node keeps up with the
hosts that are due. In Redis a URL that is found late, with budget left, waits for all whose hosts are due. So while a
node is behind, more and more extra URLs stay on disk. A node that keeps up has the hot set full of whatever waits: it
may need every host.
"""

from __future__ import annotations

from math import ceil
from typing import Final

HOT_MS: Final = 25_000
"""For so long a host's share lasts: several steps of its partition, each of which fills it up again."""

PAGES: Final = 256
"""The rest that hosts have is the mean of about so many pages."""

EXTRA_DIVISOR_MAX = 8  # at least 1/8 of the hot set may be extra
LATE_MS = 1_000  # a node whose hosts wait for so long after they are due is behind
BEHIND_MS = 2_000  # for so long: no burst of hosts that fell due together
CAUGHT_UP_MS = 1_000


class HotShare:
    """The share of a host, by how long the hosts of this node's latest pages were told to rest."""

    def __init__(self, delay_ms: int, urls_max: int) -> None:
        """Begin with the set delay; the share is never above `urls_max`."""
        self._rest_ms = float(delay_ms)
        self._urls_max = urls_max

    def __repr__(self) -> str:
        return f"<HotShare {self.urls} at {self._rest_ms:.0f} ms>"

    def note(self, rest_ms: int) -> None:
        """A page has ended, and its host rests for so long. Cost: 0.1 us."""
        self._rest_ms += (rest_ms - self._rest_ms) / PAGES

    @property
    def urls(self) -> int:
        """How many URLs of a host are hot before other hosts have theirs; at least 1."""
        if self._rest_ms * self._urls_max <= HOT_MS:
            return self._urls_max
        return max(1, ceil(HOT_MS / self._rest_ms))


class Lateness:
    """Of one node.

    Attributes:
        extra_divisor: one of so many hot URLs may be extra.
    """

    def __init__(self) -> None:
        self.extra_divisor = 1
        self._is_behind = False
        self._since_ms = 0  # since when it is so, or when the divisor last followed

    def __repr__(self) -> str:
        return f"<Lateness is_behind={self._is_behind} extra_divisor={self.extra_divisor}>"

    def note(self, late_ms: float, now_ms: int) -> bool:
        """Hosts wait for so long after they are due; returns whether the divisor is another one now."""
        is_behind = late_ms >= LATE_MS
        if is_behind != self._is_behind:
            self._is_behind, self._since_ms = is_behind, now_ms
        divisor = min(2 * self.extra_divisor, EXTRA_DIVISOR_MAX) if is_behind else max(1, self.extra_divisor // 2)
        if divisor == self.extra_divisor or now_ms - self._since_ms < (BEHIND_MS if is_behind else CAUGHT_UP_MS):
            return False
        self.extra_divisor, self._since_ms = divisor, now_ms
        return True
