"""How many URLs of one host, and how many extra URLs, may be hot (step 7).

While other hosts wait, a host gets as many hot URLs as are fetched from it in 25 seconds. The hot set has a fixed size,
and a host that rests for half a minute after each fetch needs one URL there rather than twenty-five. If hosts rest
longer, each has fewer hot URLs, and more hosts fit: about BIGCRAWL_HOT_URLS / share. Together they allow
BIGCRAWL_HOT_URLS / 25 pages a second, or fewer if hosts rest longer than 25 seconds, because each has at least one URL.
Source: PolyBot §3.5 (more hosts than speed times delay). Differs: URLs are counted, because they take up the memory.

The share of extra URLs, which are beyond their PLDs' budgets, depends on whether the node keeps up with the hosts that
are due. A hot URL within its budget that was discovered late would wait behind the extra URLs of all due hosts. So
while a node is behind, more and more extra URLs stay on disk. A node that keeps up may fill the hot set with them,
because it may need every host.
"""

from __future__ import annotations

from math import ceil
from typing import Final

HOT_MS: Final = 25_000
"""A host's share lasts this long. That is several steps of its partition, each of which refills it."""

PAGES: Final = 256
"""The mean rest of hosts is that after about this many latest pages."""

EXTRA_DIVISOR_MAX = 8  # at least 1/8 of the hot set may be extra
LATE_MS = 1_000  # a node is behind if hosts wait this long after they are due
BEHIND_MS = 2_000  # time behind before the divisor rises; a burst of hosts due together passes sooner
CAUGHT_UP_MS = 1_000  # time not behind before the divisor falls


class HotShare:
    """The share of a host. It follows from the mean rest of hosts after this node's latest pages."""

    def __init__(self, delay_ms: int, urls_max: int) -> None:
        """Begin with the configured delay. The share never exceeds `urls_max`."""
        self._rest_ms = float(delay_ms)
        self._urls_max = urls_max

    def __repr__(self) -> str:
        return f"<HotShare {self.urls} at {self._rest_ms:.0f} ms>"

    def note(self, rest_ms: int) -> None:
        """Record that a page has ended, and its host rests for `rest_ms`. Cost: 0.1 us."""
        self._rest_ms += (rest_ms - self._rest_ms) / PAGES

    @property
    def urls(self) -> int:
        """How many URLs of a host may be hot before other hosts get theirs; at least 1."""
        if self._rest_ms * self._urls_max <= HOT_MS:
            return self._urls_max
        return max(1, ceil(HOT_MS / self._rest_ms))


class Lateness:
    """Whether a node is behind with due hosts, and what follows for extra URLs.

    Attributes:
        extra_divisor: at most 1/`extra_divisor` of the hot set may be extra URLs.
    """

    def __init__(self) -> None:
        self.extra_divisor = 1
        self._is_behind = False
        self._since_ms = 0  # since when `_is_behind` holds, or when the divisor last changed

    def __repr__(self) -> str:
        return f"<Lateness is_behind={self._is_behind} extra_divisor={self.extra_divisor}>"

    def note(self, late_ms: float, now_ms: int) -> bool:
        """Record how long hosts wait after they are due. Return whether the divisor has changed."""
        is_behind = late_ms >= LATE_MS
        if is_behind != self._is_behind:
            self._is_behind, self._since_ms = is_behind, now_ms
        divisor = min(2 * self.extra_divisor, EXTRA_DIVISOR_MAX) if is_behind else max(1, self.extra_divisor // 2)
        if divisor == self.extra_divisor or now_ms - self._since_ms < (BEHIND_MS if is_behind else CAUGHT_UP_MS):
            return False
        self.extra_divisor, self._since_ms = divisor, now_ms
        return True
