"""Finds signs of traps in fetched pages and DNS, and sends them as marks to the partition of their PLD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.features.traps.same_content import SameContent
from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.wildcard_dns import WildcardDns
from bigcrawl.scheduler.budgets.policies import NO_POLICY
from bigcrawl.scheduler.handout.observers import Observer

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import NodeSide
    from bigcrawl.scheduler.records.held import HeldUrl


def observer_of(side: NodeSide) -> TrapSigns | None:
    config = side.config
    return TrapSigns(side) if config.feature_config(TrapConfig).share and config.budget.policy != NO_POLICY else None


class TrapSigns(Observer):
    def __init__(self, side: NodeSide) -> None:
        traps = side.config.feature_config(TrapConfig)
        self._pld_of = side.pld_of
        self._was_fetched = side.was_fetched
        self._same_content = SameContent(traps.same_share, side.pld_of, side.pld_key)
        self._wildcards = WildcardDns(traps.wildcard_hosts, side.look_up, side.pld_key)

    def record_answer(self, held: HeldUrl, body: bytes) -> bytes:
        if self._was_fetched(held):
            return b""  # a revisited page has its own content again, which proves nothing
        marks = self._same_content.record_page(held.host, body)
        if self._wildcards.has_verdicts:
            marks += self._wildcards.take_verdict(self._pld_of(held.host))
        return marks

    def record_look_up(self, pld: str) -> None:
        self._wildcards.count_host(pld)

    async def close(self) -> None:
        await self._wildcards.close()
