"""The budgets that the partitions of a node use, and what these count for the budgets of all nodes (step 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread


class OwnedBudgets:
    """Brings budgets to the partitions of a node, and answers what they are."""

    def __init__(self, crawl_budgets: CrawlBudgets, table: OwnedTable, thread: FileThread, least: int) -> None:
        """`least` is the least budget of a PLD, in URLs a turn."""
        self._crawl_budgets = crawl_budgets
        self._table = table
        self._thread = thread
        self._least = least

    def __repr__(self) -> str:
        return f"<OwnedBudgets {self._crawl_budgets!r} of {self._table!r}>"

    async def refresh(self) -> None:
        """Publish what the owned partitions count, and give them the budgets that follow from all nodes' counts.

        Raises:
            TransientStoreError: Redis is unreachable. Budgets stay as they are.
        """
        by_number = self._table.by_number
        if await self._crawl_budgets.refresh(by_number.values()):
            for owned in by_number.values():
                self._crawl_budgets.give_to(owned.disk)
                owned.note_budgets()

    async def of_host(self, partition: int, host: str) -> int:
        """The budget of a host's PLD in URLs a turn. The least budget if another node owns the partition.

        Raises:
            TransientStoreError, CorruptionError: the partition cannot be read.
        """
        owned = self._table.by_number.get(partition)
        if owned is None:
            return self._least
        [budget] = await self._thread.run(lambda: self._crawl_budgets.budgets_of(owned.disk, [host]))
        return budget
