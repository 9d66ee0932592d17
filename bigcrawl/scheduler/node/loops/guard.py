"""The guard: gives up the fetches under way as soon as the node's lease is over, whatever the other loops wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.loop import Loop

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts

LOOK_S = 1.0  # at the latest: the boot clock, which leases follow, goes on while the machine sleeps, but timers do not
OVER_S = 0.25  # between two looks while there is no lease


class Guard(Loop):
    """Keeps what `claim_partition` relies on: a node that runs has no fetch under way once its lease is over."""

    name = "guard"

    def __init__(self, parts: Parts) -> None:
        self._handout = parts.handout
        self._clock = parts.clock

    async def turn(self) -> float:
        """One round. Waits for nothing."""
        left_ms = self._handout.lease.ends_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            return min(left_ms / 1000, LOOK_S)
        self._handout.break_off()
        return OVER_S
