"""The guard abandons the running fetches once the node's lease is over, even if other loops hang."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.loop import Loop

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts

LOOK_S = 1.0  # leases follow the boot clock, which runs while the machine sleeps; timers do not
OVER_S = 0.25


class Guard(Loop):
    """`claim_partition` relies on it: a running node has no fetch in process once its lease is over."""

    name = "guard"

    def __init__(self, parts: Parts) -> None:
        self._handout = parts.handout
        self._clock = parts.crawl.clock

    async def turn(self) -> float:
        left_ms = self._handout.lease.ends_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            return min(left_ms / 1000, LOOK_S)
        self._handout.break_off()
        return OVER_S
