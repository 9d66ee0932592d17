"""How many pages of each PLD are in which kind of language, and what that costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from bigcrawl.drum.bucket import Kind
from bigcrawl.features.languages.settings import LanguageConfig
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import DivisorArray
    from bigcrawl.scheduler.partition.tables import Tables

OURS: Final = 1951
FOREIGN: Final = 1952
_FIELDS: Final = {OURS: "ours", FOREIGN: "foreign"}
_RECORD: Final = np.dtype([("ours", "<u4"), ("foreign", "<u4")])
_LEAST: Final = 16  # pages before the first verdict


class Languages(Feature):
    """PLDs whose pages are in other languages than those that are wanted."""

    name = "languages"
    tables: ClassVar = {"languages": Kind("language", _RECORD, fresh_max=1024)}
    counts = ("foreign_pages",)

    @classmethod
    def of_config(cls, config: Config) -> Languages | None:
        return cls() if config.feature_config(LanguageConfig).wanted else None

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _LanguageStep(tables, pld_of)

    def divisors(self, tables: Tables, plds: KeyArray) -> DivisorArray | None:
        _, found = tables["languages"].values(plds)
        is_foreign = (found["foreign"] > found["ours"]) & (found["foreign"] >= _LEAST)
        return np.where(is_foreign, 2, 1).astype(np.uint32) if is_foreign.any() else None


class _LanguageStep(StepPart):
    marks = tuple(_FIELDS)

    def fold_marks(self, code: int, keys: KeyArray, values: npt.NDArray[Any]) -> None:
        table = self.tables["languages"]
        plds, pages = np.unique(keys, return_counts=True)
        _, records = table.values(plds)
        records[_FIELDS[code]] += pages.astype(np.uint32)
        self.tables.commit(table, table.put(plds, records))
        if code == FOREIGN:
            self.counted["foreign_pages"] += len(keys)


FEATURE = Languages
