"""The budgets of a node's partitions, and their counts for the budgets of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.partition.partition import Step


class OwnedBudgets:
    def __init__(
        self, crawl_budgets: CrawlBudgets, table: OwnedTable, thread: FileThread, paces: HostDelays, least: int
    ) -> None:
        self._crawl_budgets = crawl_budgets
        self._table = table
        self._thread = thread
        self._paces = paces
        self._least = least

    async def refresh(self) -> None:
        by_number = self._table.by_number
        if await self._crawl_budgets.refresh(by_number.values()):
            for owned in by_number.values():
                self._crawl_budgets.give_to(owned.disk)
                owned.record_budgets()

    async def record_admitted(self, steps: Mapping[OwnedPartition, Step]) -> None:
        """Pass the budgets of newly admitted hosts to the paces, if these depend on budgets."""
        if self._paces.are_scaled:
            self._paces.record_budgets(await self._thread.run(lambda: self._of_admitted(steps)))

    def _of_admitted(self, steps: Mapping[OwnedPartition, Step]) -> dict[str, int]:
        found: dict[str, int] = {}
        for owned, step in steps.items():
            if step.batch is not None:
                hosts = list({url.host for url in step.batch.urls})
                found |= zip(hosts, self._crawl_budgets.budgets_of(owned.disk, hosts), strict=True)
        return found

    async def of_host(self, partition: int, host: str) -> int:
        """Return the budget of a host's PLD in URLs a turn; the least budget if another node owns the partition."""
        owned = self._table.by_number.get(partition)
        if owned is None:
            return self._least
        [budget] = await self._thread.run(lambda: self._crawl_budgets.budgets_of(owned.disk, [host]))
        return budget
