"""Counts of pages and bytes that have a limit, by account."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.budgets.allowances import COUNTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Allowances, TotalArray
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class PageTotals:
    """Reads the totals, and counts what passes."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __repr__(self) -> str:
        return f"<PageTotals {self._tables.totals!r}>"

    def of(self, accounts: KeyArray) -> tuple[TotalArray, TotalArray]:
        """Return pages and bytes of each account."""
        _, totals = self._tables.totals.values(accounts)
        return totals["pages"], totals["bytes"]

    def counted(self, urls: Sequence[QueuedUrl], allowed: Allowances) -> Sequence[QueuedUrl]:
        """Count the URLs that totals count now. Return the URLs as they are queued."""
        if not len(allowed.counted_in):
            return urls
        table = self._tables.totals
        accounts, counts = np.unique(allowed.counted_in, return_counts=True)
        _, totals = table.values(accounts)
        totals["pages"] += counts.astype(np.uint64)
        self._tables.commit(table, table.put(accounts, totals))
        pairs = zip(urls, allowed.counted.tolist(), strict=True)
        return [url._replace(flags=url.flags | COUNTED) if is_counted else url for url, is_counted in pairs]
