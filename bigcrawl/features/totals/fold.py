"""Counts the pages and bytes of each account in a partition, and withholds URLs beyond a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from bigcrawl.drum.bucket import Kind
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.features.totals.limits import BYTES, PAGES
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import BoundUrl
    from bigcrawl.scheduler.partition.tables import Tables

TOTAL: Final = np.dtype([("pages", "<u8"), ("bytes", "<u8")])

COUNTED: Final = 2
"""A bit of `QueuedUrl.flags`: the URL is already in a total of pages, and is not counted again when re-read."""

FETCHED: Final = 1900
"""The code of a mark whose key is an account and whose detail is the KiB of bodies fetched for that account."""

_TABLE = "totals"


class PageTotals(Feature):
    """Limits the total pages and bytes of accounts. Always on, because rules may be set during the crawl."""

    name = "totals"
    tables: ClassVar = {_TABLE: Kind("total", TOTAL, fresh_max=1024)}
    larger_counts: ClassVar = {_TABLE: ("pages", "bytes")}

    @classmethod
    def of_config(cls, config: Config) -> PageTotals:
        return cls()

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _TotalStep(tables, pld_of)


class _TotalStep(StepPart):
    marks = (FETCHED,)

    def fold_marks(self, code: int, keys: KeyArray, values: npt.NDArray[Any]) -> None:
        table = self.tables[_TABLE]
        accounts, whose = np.unique(keys, return_inverse=True)
        _, totals = table.values(accounts)
        np.add.at(totals["bytes"], whose, values["detail"].astype(np.uint64) << np.uint64(10))
        self.tables.commit(table, table.put(accounts, totals))

    def limit(self, bound: Sequence[BoundUrl]) -> None:
        limited = {one.limits[name].account for one in bound for name in (PAGES, BYTES) if name in one.limits}
        if not limited:
            return
        table, accounts = self.tables[_TABLE], np.array(sorted(limited), dtype=KEY_TYPE)
        _, totals = table.values(accounts)
        pages, sizes = (dict(zip(sorted(limited), totals[field].tolist(), strict=True)) for field in ("pages", "bytes"))
        for one in bound:
            of_bytes, of_pages = one.limits.get(BYTES), one.limits.get(PAGES)
            if of_bytes and sizes[of_bytes.account] >= of_bytes.value:
                one.withhold()
            elif of_pages and not one.url.flags & COUNTED:
                if pages[of_pages.account] >= of_pages.value:
                    one.withhold()
                elif one.budget:
                    pages[of_pages.account] += 1
                    one.flag(COUNTED)
        counted = np.array([*pages.values()], dtype=np.uint64)
        if (has_more := counted != totals["pages"]).any():
            totals["pages"] = counted
            self.tables.commit(table, table.put(accounts[has_more], totals[has_more]))


FEATURE = PageTotals
