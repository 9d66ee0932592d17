from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bigcrawl.content.copies import COPIES, find_exact, record_all, record_near
from bigcrawl.content.exact_copies import CONTENTS
from bigcrawl.content.sketched import ALIKE, NEAR
from bigcrawl.features.copies import rows as kinds
from bigcrawl.features.copies.settings import CopyConfig
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.content.copies import CopyCounts
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.tables import Tables

_CONTENTS, _NEAR, _COPIES = "contents", "near", "copies"
_EXACT_COUNT, _NEAR_COUNT = "exact_copies", "near_copies"


class Copies(Feature):
    """Finds copies of pages. Rows from other nodes are folded whatever this node's settings are."""

    name = "copies"
    tables: ClassVar = {_CONTENTS: CONTENTS, _NEAR: NEAR, _COPIES: COPIES}
    counts = (_EXACT_COUNT, _NEAR_COUNT)

    def __init__(self, similarity: float = ALIKE) -> None:
        self._similarity = similarity

    @classmethod
    def of_config(cls, config: Config) -> Copies:
        return cls(config.feature_config(CopyConfig).near_similarity)

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _CopiesStep(tables, pld_of, self._similarity)


class _CopiesStep(StepPart):
    def __init__(self, tables: Tables, pld_of: Callable[[str], str], similarity: float) -> None:
        super().__init__(tables, pld_of)
        self._similarity = similarity

    def fold_rows(self, rows: Mapping[int, npt.NDArray[Any]]) -> None:
        tables = self.tables
        seen, sketched, found = rows[kinds.SEEN], rows[kinds.SKETCHED], rows[kinds.FOUND]
        if len(seen):
            contents, copies = tables[_CONTENTS], tables[_COPIES]
            self._count_copies(find_exact(contents, copies, seen["content"], seen["page"], tables.commit))
        if len(found):
            self._count_copies(record_near(tables[_CONTENTS], tables[_COPIES], found, tables.commit))
        if len(sketched):
            from bigcrawl.content.near_copies import find_near  # a crawl that looks for them has it from its start

            table = tables[_NEAR]
            near = find_near(table, sketched, lambda result: tables.commit(table, result), self._similarity)
            self.owed += kinds.pack_found(near.contents, near.pages, near.originals)

    def imported(self, rows: TableRows) -> TableRows | None:
        if rows.table != _COPIES or rows.values is None:
            return rows
        self._count_copies(record_all(self.tables[_COPIES], rows.values, self.tables.commit))
        return None

    def _count_copies(self, more: CopyCounts) -> None:
        self.counted[_EXACT_COUNT] += more.exact
        self.counted[_NEAR_COUNT] += more.near


FEATURE = Copies
