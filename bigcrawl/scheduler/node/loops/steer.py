"""Carries out orders to the running crawl, and adjusts its speed and its number of concurrent fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.loop import RETRY_S, Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.owner.ownership import Ownership

STEER_S = 0.2
STEER_IDLE_S = 1.0  # while nothing is fetched: orders are obeyed within a second, and no loop wakes alone
STEER_SLOWED_S = 0.04


class Steer(Loop):
    name = "steer"

    def __init__(self, parts: Parts, wake_pump: Callable[[], None]) -> None:
        self._troubles = parts.troubles
        self._handout = parts.handout
        self._control = parts.control
        self._ownership = parts.ownership
        self._speed = parts.handout.speed
        self._membership = parts.crawl.membership
        self._reputation = parts.ownership.crawl_budgets
        self._workload = parts.workload
        self._wake_pump = wake_pump
        self._wake_fold = parts.ownership.table.pending.event.set
        self._obeyed: tuple[object, ...] = ()

    async def turn(self) -> float:
        handout, speed = self._handout, self._speed
        if handout.crowd.adjust(handout.held):
            handout.wake_engine()
        if self._troubles.is_restarted:
            return RETRY_S
        if await self._control.read_if_due():
            schedule_parking(self._ownership)
            self._wake_pump()
        control = self._control
        if (orders := (control.checkpoint, control.is_drained, control.is_closed)) != self._obeyed:
            self._obeyed = orders
            self._wake_pump()
            self._wake_fold()
        if self._reputation.is_told:
            self._workload.emptied.set()
        if speed.speed.is_paused and handout.lanes.are_open:
            handout.lanes.shut_all()
            self._wake_pump()
        if speed.wants_permits(handout.buffer.waiting):
            await speed.request_permits(handout.buffer.waiting, len(self._membership.reports))
        if speed.limits and not speed.is_refused:
            return STEER_SLOWED_S
        if len(handout.in_process):
            return STEER_S
        return min(STEER_IDLE_S, max(STEER_SLOWED_S, speed.refused_s)) if speed.limits else STEER_IDLE_S


def schedule_parking(ownership: Ownership) -> None:
    for owned in ownership.owned.values():
        owned.away.poll_again()
        ownership.table.pending.to_park.add(owned)
