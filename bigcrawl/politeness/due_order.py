"""Which of many hosts is due first, without a look at all of them.

| a host with requests is | when |
|---|---|
| ordered | it was due, or will be, at the time it stands under; it may have become later since |
| set aside | it is busy: it has no time until its fetch has ended |

Set aside are no more hosts than there are places to fetch in, so that looking them all through is cheap.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DueOrder:
    """Hosts by the time from which they may be asked; of two with one time the one that came first."""

    def __init__(self, due_ms: Callable[[str], int | None]) -> None:
        """Ask `due_ms` from when on a host may be asked; it answers None for a busy one."""
        self._due_ms = due_ms
        self._ordered: list[tuple[int, int, str]] = []
        self._aside: dict[str, None] = {}
        self._known: set[str] = set()
        self._count = 0

    def __repr__(self) -> str:
        return f"DueOrder({len(self._ordered)} hosts, {len(self._aside)} set aside)"

    def __len__(self) -> int:
        return len(self._known)

    def _check(self) -> None:
        """Assert that each known host stands in one place."""
        ordered = [host for _, _, host in self._ordered]
        assert sorted([*ordered, *self._aside]) == sorted(self._known)

    @property
    def next_ms(self) -> int | None:
        """The earliest time to ask again for one that is not busy; None while all are."""
        return self._ordered[0][0] if self._ordered else None

    def add(self, host: str) -> None:
        """Take a host in, if it is not known."""
        if host not in self._known:
            self._known.add(host)
            self._order(0, host)

    def remove(self, host: str) -> None:
        """Forget the host that `first` has just returned."""
        assert self._ordered[0][2] == host, f"{host} is not the first"
        heappop(self._ordered)
        self._known.discard(host)

    def first(self, now_ms: int, is_free: Callable[[str], bool]) -> str | None:
        """Return the host that has been due for longest, or None; it stays where it is.

        Args:
            now_ms: now.
            is_free: whether a host that is not busy has no request under way either.

        Cost: O(log hosts) for each host whose time has come, and a look at each that is set aside.
        """
        for host in [aside for aside in self._aside if is_free(aside)]:
            due_ms = self._due_ms(host)
            if due_ms is not None:
                del self._aside[host]
                self._order(due_ms, host)
        while self._ordered and self._ordered[0][0] <= now_ms:
            host = self._ordered[0][2]
            due_ms = self._due_ms(host)
            if due_ms is None or not is_free(host):
                heappop(self._ordered)
                self._aside[host] = None
            elif due_ms > now_ms:
                heapreplace(self._ordered, self._entry(due_ms, host))
            else:
                return host
        return None

    def _order(self, due_ms: int, host: str) -> None:
        heappush(self._ordered, self._entry(due_ms, host))

    def _entry(self, due_ms: int, host: str) -> tuple[int, int, str]:
        self._count += 1
        return (due_ms, self._count, host)
