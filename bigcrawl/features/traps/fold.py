"""Traps in a partition: counts trap-shaped URLs and nodes' verdicts, and lowers the budgets of traps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bigcrawl.drum.bucket import Kind
from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.verdicts import (
    RECORD,
    SAME_CONTENT,
    WILDCARD,
    TrapRules,
    TrapVerdict,
    divisors_of_traps,
    record_same_content,
    record_shapes,
    record_wildcards,
    trap_change_text,
    trap_verdict_of,
)
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart
from bigcrawl.scheduler.records.outcomes import last_of_each

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import DivisorArray
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_TABLE = "traps"
_NOTES = {SAME_CONTENT: record_same_content, WILDCARD: record_wildcards}


class Traps(Feature):
    name = "traps"
    tables: ClassVar = {_TABLE: Kind("trap", RECORD, fresh_max=1024)}
    explains_by = (_TABLE,)

    def __init__(self, rules: TrapRules) -> None:
        self._rules = rules

    @classmethod
    def of_config(cls, config: Config) -> Traps | None:
        rules = TrapRules(config.feature_config(TrapConfig).share, config.feature_config(TrapConfig).divisor)
        return cls(rules) if rules.share else None

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _TrapStep(tables, pld_of, self._rules)

    def divisors(self, tables: Tables, plds: KeyArray) -> DivisorArray | None:
        return divisors_of_traps(tables[_TABLE], plds, self._rules)

    @classmethod
    def look_up(cls, tables: Tables, key: int, pld: int) -> TrapVerdict | None:
        record = tables.record(_TABLE, pld)
        return None if record is None else trap_verdict_of(record)

    @classmethod
    def look_up_plds(cls, tables: Tables, plds: KeyArray) -> tuple[TrapVerdict | None, ...]:
        return tables.verdicts(_TABLE, plds, trap_verdict_of)


class _TrapStep(StepPart):
    marks = tuple(_NOTES)

    def __init__(self, tables: Tables, pld_of: Callable[[str], str], rules: TrapRules) -> None:
        super().__init__(tables, pld_of)
        self._rules = rules

    def fold_marks(self, code: int, keys: KeyArray, values: npt.NDArray[Any]) -> None:
        table = self.tables[_TABLE]
        plds, last = last_of_each(keys, values)
        noted = _NOTES[code](table, plds, last["detail"])
        if noted is not None:
            self.tables.commit(table, table.put(*noted))

    def record_new(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None:
        table = self.tables[_TABLE]
        noted = record_shapes(table, urls, plds, self._rules)
        if noted is not None:
            self.tables.commit(table, table.put(noted.plds, noted.records))
            named = ((self.pld_of(urls[at].host), verdict) for at, verdict in noted.changes)
            self.messages += [trap_change_text(pld, verdict, self._rules) for pld, verdict in named]


FEATURE = Traps
