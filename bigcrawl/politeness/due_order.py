"""Finds the host that is due first, without a scan.

| a host with requests is | when |
|---|---|
| ordered | it is due at the time it is ordered by, or later if that time has since moved |
| set aside | it is busy, and has no due time until its fetch ends |

At most as many hosts are set aside as fetches may run, so checking all of them is cheap.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DueOrder:
    def __init__(self, due_ms: Callable[[str], int | None]) -> None:
        """`due_ms` returns when a request to a host may start, or None if the host is busy."""
        self._due_ms = due_ms
        self._ordered: list[tuple[int, int, str]] = []
        self._aside: dict[str, None] = {}
        self._known: set[str] = set()
        self._numbers = count()

    def __repr__(self) -> str:
        return f"DueOrder({len(self._ordered)} hosts, {len(self._aside)} set aside)"

    def __len__(self) -> int:
        return len(self._known)

    def _check(self) -> None:
        ordered = [host for _, _, host in self._ordered]
        assert sorted([*ordered, *self._aside]) == sorted(self._known)

    @property
    def next_ms(self) -> int | None:
        """The earliest time at which a host may be due; None if all hosts are busy."""
        return self._ordered[0][0] if self._ordered else None

    def add(self, host: str) -> None:
        if host not in self._known:
            self._known.add(host)
            self._push_host(0, host)

    def remove(self, host: str) -> None:
        assert self._ordered[0][2] == host, f"{host} is not the first"
        heappop(self._ordered)
        self._known.discard(host)

    def first_due(self, now_ms: int, is_free: Callable[[str], bool]) -> str | None:
        """Return the host that has been due the longest and passes `is_free` (no running request); or None."""
        for host in [aside for aside in self._aside if is_free(aside)]:
            due_ms = self._due_ms(host)
            if due_ms is not None:
                del self._aside[host]
                self._push_host(due_ms, host)
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

    def _push_host(self, due_ms: int, host: str) -> None:
        heappush(self._ordered, self._entry(due_ms, host))

    def _entry(self, due_ms: int, host: str) -> tuple[int, int, str]:
        return (due_ms, next(self._numbers), host)
