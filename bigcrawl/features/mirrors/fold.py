"""Mirrors in a partition: counts PLDs' samples and compares them with those of other PLDs; see `verdicts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from bigcrawl.features.mirrors import rows as kinds
from bigcrawl.features.mirrors.settings import MirrorConfig
from bigcrawl.features.mirrors.verdicts import (
    MIRROR,
    MIRRORS,
    RECORD,
    SAMPLES,
    SITE,
    SITES,
    TOLD,
    MirrorRecord,
    MirrorRules,
    MirrorVerdict,
    divisors_of_mirrors,
    logged_verdict_of,
    mirror_change_text,
    mirror_verdict_of,
    octaves_of,
    unlogged_verdicts,
)
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import DivisorArray
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

    Rows = npt.NDArray[Any]

Sample = tuple[int, int, int, int]
"""A row `COUNTED`: content, PLD, number and octave."""

Hint = tuple[int, int, int, int]
"""A row `SHARED`: PLD, number, the other PLD and its octave."""

_NOBODY: Final = (-1, 0, 0)
_SITES, _SAMPLES, _MIRRORS = "sites", "samples", "mirrors"


class Mirrors(Feature):
    """Finds PLDs that copy the pages of other PLDs. Imported mirrors count even if the search is off."""

    name = "mirrors"
    tables: ClassVar = {_SITES: SITES, _SAMPLES: SAMPLES, _MIRRORS: MIRRORS}
    counts = (_MIRRORS,)
    explains_by = (_SAMPLES,)

    def __init__(self, rules: MirrorRules) -> None:
        self._rules = rules

    @classmethod
    def of_config(cls, config: Config) -> Mirrors:
        return cls(MirrorRules(config.feature_config(MirrorConfig).share, config.feature_config(MirrorConfig).divisor))

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _MirrorStep(tables, pld_of, self._rules)

    def divisors(self, tables: Tables, plds: KeyArray) -> DivisorArray | None:
        return divisors_of_mirrors(tables[_MIRRORS], plds, self._rules) if self._rules.share else None

    @classmethod
    def look_up(cls, tables: Tables, key: int, pld: int) -> MirrorVerdict | None:
        record = tables.record(_SAMPLES, pld)
        return None if record is None else mirror_verdict_of(record)

    @classmethod
    def look_up_plds(cls, tables: Tables, plds: KeyArray) -> tuple[MirrorVerdict | None, ...]:
        return tables.verdicts(_SAMPLES, plds, mirror_verdict_of)


class _MirrorStep(StepPart):
    def __init__(self, tables: Tables, pld_of: Callable[[str], str], rules: MirrorRules) -> None:
        super().__init__(tables, pld_of)
        self._rules = rules

    def fold_rows(self, rows: Mapping[int, Rows]) -> None:
        if not self._rules.share:
            return
        sampled, shared = rows[kinds.SAMPLED], rows[kinds.SHARED]
        if len(sampled) or len(shared):
            counted, more = count_samples(self.tables, sampled, shared, self._rules.share)
            self.hints.append((kinds.COUNTED, counted))
            self.counted[_MIRRORS] += more
        if len(rows[kinds.COUNTED]):
            self.hints.append((kinds.SHARED, find_shared(self.tables, rows[kinds.COUNTED])))

    def imported(self, rows: TableRows) -> TableRows:
        if rows.table == _MIRRORS:
            rows = only_sampled(self.tables, rows)
            self.counted[_MIRRORS] += count_new_mirrors(self.tables, rows)
        return rows

    def announce(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None:
        untold = unlogged_verdicts(self.tables[_MIRRORS], plds) if self._rules.share else None
        if untold is None:
            return
        keys, records = untold
        self.tables.commit(self.tables[_MIRRORS], self.tables[_MIRRORS].put(keys, records))
        names = {int(pld): self.pld_of(url.host) for url, pld in zip(urls, plds, strict=True)}
        verdicts = zip(keys.tolist(), map(logged_verdict_of, records), strict=True)
        self.messages += [mirror_change_text(names[key], verdict, self._rules) for key, verdict in verdicts]


def count_samples(tables: Tables, sampled: Rows, shared: Rows, share: float) -> tuple[list[Sample], int]:
    """Count samples of PLDs and decide which are mirrors. Return rows for contents' partitions, and the net change."""
    keys = np.array(sorted({*sampled["pld"].tolist(), *shared["pld"].tolist()}), np.uint64)
    plds = keys.tolist()
    octave_of = dict(zip(plds, octaves_of(tables.plds.values(keys)[1]["in_degree"]).tolist(), strict=True))
    _, before = tables[_SAMPLES].values(keys)
    records = {pld: MirrorRecord(*values) for pld, values in zip(plds, before.tolist(), strict=True)}
    counted = [
        (content, pld, records[pld].count_sample(), octave_of[pld])
        for pld, content in sampled.tolist()
        if records[pld].record_content(content)
    ]
    for pld, number, other, octave in shared.tolist():
        # More PLDs may link to this PLD by now than when the two were compared.
        if (octave, other) > (octave_of[pld], pld):
            records[pld].record_shared(number, other)
    verdicts = {pld: record.verdict for pld, record in records.items() if record.update_verdict(share)}
    for pld in [pld for pld, verdict in verdicts.items() if not verdict.is_mirror]:
        records[pld].reset()
    after = np.array([record.as_tuple() for record in records.values()], dtype=RECORD)
    tables.commit(tables[_SAMPLES], tables[_SAMPLES].put(keys, after))
    return counted, _record_verdicts(tables, verdicts) if verdicts else 0


def _record_verdicts(tables: Tables, verdicts: dict[int, MirrorVerdict]) -> int:
    """Record changed verdicts, in ascending PLD order, and return the net change in the number of mirrors."""
    keys = np.array(list(verdicts), dtype=np.uint64)
    _, records = tables[_MIRRORS].values(keys)
    before = int((records["state"] & MIRROR != 0).sum())
    records["state"] = records["state"] & TOLD | [MIRROR * verdict.is_mirror for verdict in verdicts.values()]
    for name in ("shared", "weighed", "other"):
        records[name] = [getattr(verdict, name) for verdict in verdicts.values()]
    tables.commit(tables[_MIRRORS], tables[_MIRRORS].put(keys, records))
    return int((records["state"] & MIRROR != 0).sum()) - before


def find_shared(tables: Tables, counted: Rows) -> list[Hint]:
    """Find the greatest PLD that has each content. Return a hint for every other PLD that has that content."""
    keys = np.array(sorted(set(counted["content"].tolist())), np.uint64)
    found, sites = tables[_SITES].values(keys)
    rows: list[Sample] = [
        (content, *site)
        for content, is_there, site in zip(keys.tolist(), found.tolist(), sites.tolist(), strict=True)
        if is_there
    ]
    before = {content: (octave, pld, number) for content, pld, number, octave in rows}
    greatest = dict(before)
    rows += counted.tolist()
    for content, pld, number, octave in rows:
        if (octave, pld, number) > greatest.get(content, _NOBODY):
            greatest[content] = octave, pld, number
    changed = sorted(content for content, those in greatest.items() if those != before.get(content))
    if changed:
        after = [(pld, number, octave) for octave, pld, number in map(greatest.__getitem__, changed)]
        tables.commit(
            tables[_SITES], tables[_SITES].put(np.array(changed, dtype=np.uint64), np.array(after, dtype=SITE))
        )
    hints = []
    for content, pld, number, _ in rows:
        octave, other, _ = greatest[content]
        if other != pld:
            hints.append((pld, number, other, octave))
    return hints


def only_sampled(tables: Tables, rows: TableRows) -> TableRows:
    """Return the imported rows of the table `mirrors` that own samples confirm; nothing would ever correct others."""
    if rows.values is None:
        return rows
    found, records = tables[_SAMPLES].values(rows.keys)
    is_same = found & (records["state"] & MIRROR == rows.values["state"] & MIRROR)
    return rows._replace(keys=rows.keys[is_same], values=rows.values[is_same])


def count_new_mirrors(tables: Tables, rows: TableRows) -> int:
    if rows.values is None:
        return 0
    found, _ = tables[_MIRRORS].values(rows.keys)
    return int((~found & (rows.values["state"] & MIRROR != 0)).sum())


FEATURE = Mirrors
