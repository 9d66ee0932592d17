"""Limits the URLs of one host, and the extra URLs, in the hot set.

A host gets as many hot URLs as are fetched from it in 25 seconds. So the longer hosts rest, the more hosts fit: about
BIGCRAWL_HOT_URLS / share. Together they allow BIGCRAWL_HOT_URLS / 25 pages a second, or fewer if hosts rest longer than
25 seconds. Source: PolyBot §3.5 (more hosts than speed times delay). Differs: URLs are counted, because they take up
the memory.

While a node is behind with due hosts, fewer and fewer URLs beyond their PLDs' budgets (extra URLs) are admitted, so
that URLs within budget need not wait behind them.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

HOT_MS: Final = 25_000
"""How long a host's share lasts: several steps of its partition, each of which refills the share."""

PAGES: Final = 256
EXTRA_DIVISOR_MAX = 8  # at least 1/8 of the hot set may be extra
LATE_MS = 1_000
BEHIND_MS = 2_000  # longer than a burst of hosts due together
CAUGHT_UP_MS = 1_000


class HotShare:
    def __init__(self, delay_ms: int, urls_max: int) -> None:
        self._rest_ms = float(delay_ms)
        self._urls_max = urls_max

    def record_rest(self, rest_ms: int) -> None:
        self._rest_ms += (rest_ms - self._rest_ms) / PAGES

    @property
    def urls(self) -> int:
        """How many hot URLs a host may have; at least 1."""
        if self._rest_ms * self._urls_max <= HOT_MS:
            return self._urls_max
        return max(1, ceil(HOT_MS / self._rest_ms))


class LatenessCheck:
    """Whether a node is late for due hosts. At most 1/`extra_divisor` of the hot set may be extra URLs."""

    def __init__(self, late_ms: Callable[[], float]) -> None:
        self._late_ms = late_ms
        self.extra_divisor = 1
        self._is_behind = False
        self._since_ms = 0

    def update(self, now_ms: int) -> bool:
        is_behind = self._late_ms() >= LATE_MS
        if is_behind != self._is_behind:
            self._is_behind, self._since_ms = is_behind, now_ms
        divisor = min(2 * self.extra_divisor, EXTRA_DIVISOR_MAX) if is_behind else max(1, self.extra_divisor // 2)
        if divisor == self.extra_divisor or now_ms - self._since_ms < (BEHIND_MS if is_behind else CAUGHT_UP_MS):
            return False
        self.extra_divisor, self._since_ms = divisor, now_ms
        return True
