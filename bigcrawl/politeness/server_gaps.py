from __future__ import annotations

from collections import OrderedDict


class ServerGaps:
    """Grants start times to fetches, `gap_ms` apart for each server, by the caller's clock; forgets old servers."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms
        self._free_ms: OrderedDict[str, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"ServerGaps({len(self._free_ms)} servers)"

    def __len__(self) -> int:
        return len(self._free_ms)

    def grant(self, server: str, now_ms: int) -> int:
        """Return when a fetch from the server may start, `now_ms` or later. The next fetch gets a later time."""
        start_ms = max(now_ms, self._free_ms.pop(server, now_ms))
        self._free_ms[server] = start_ms + self._gap_ms
        self._forget_expired(now_ms)
        return start_ms

    def _forget_expired(self, now_ms: int) -> None:
        for _ in range(2):
            server, free_ms = next(iter(self._free_ms.items()))
            if free_ms > now_ms:
                self._free_ms.move_to_end(server)
                return
            del self._free_ms[server]
            if not self._free_ms:
                return
