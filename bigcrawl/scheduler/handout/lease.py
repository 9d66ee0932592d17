"""The time until which a node may send requests and hand out URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.clock import Clock


class Lease:
    """The shortest lease of the node's partitions, monotonic; 0 before the first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ends_ms = 0

    def __repr__(self) -> str:
        return f"<Lease until {self.ends_ms} ms>"

    @property
    def is_valid(self) -> bool:
        return self._clock.monotonic_ms() < self.ends_ms

    def renew(self, ends_ms: int) -> None:
        self.ends_ms = ends_ms
