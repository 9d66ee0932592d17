"""Shares DNS look-ups among PLDs by their budgets, read only beyond what each PLD has. Source: IRLbot §1.2 b."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.politeness.lookup_pace import LookupPace
from bigcrawl.scheduler.budgets.policies import NO_POLICY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config


class LookupLimits:
    def __init__(
        self,
        config: Config,
        clock: Clock,
        pld_of: Callable[[str], str],
        budget_of: Callable[[str], Awaitable[int]],
        record_look_up: Callable[[str], None] | None = None,
    ) -> None:
        names = 0 if config.budget.policy == NO_POLICY else config.dns.pld_names
        self._pace = LookupPace(names) if names else None
        self._base = max(1, config.budget.base)
        self._clock = clock
        self._pld_of = pld_of
        self._budget_of = budget_of
        self._record_look_up = record_look_up

    def __repr__(self) -> str:
        return f"<LookupLimits {self._pace!r}>"

    async def take_turn(self, host: str) -> int:
        """Count a look-up and return 0 if the PLD may have one now; else the wait in ms."""
        pld = self._pld_of(host)
        wait_ms = await self._take_turn(pld, host)
        if not wait_ms and self._record_look_up is not None:
            self._record_look_up(pld)
        return wait_ms

    async def _take_turn(self, pld: str, host: str) -> int:
        if self._pace is None:
            return 0
        share = self._pace.free_share(pld, self._clock.monotonic_ms())
        if share is None:
            share = await self._budget_share(host)
        return self._pace.wait_ms(pld, host, share, self._clock.monotonic_ms())

    async def _budget_share(self, host: str) -> float:
        try:
            budget = await self._budget_of(host)
        except BigcrawlError:  # the partition cannot be read now, or another node owns it
            return 1.0
        return max(budget, 1) / self._base
