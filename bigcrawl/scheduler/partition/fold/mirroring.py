"""What a step learns of mirrors: samples of PLDs are counted, and compared with those of others (step 5).

See `bigcrawl.scheduler.budgets.mirrors`. The partition of a PLD counts its samples and hears which of them are shared;
that of a content finds the greater of the PLDs that have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.scheduler.budgets.mirrors import MIRROR, RECORD, SITE, TOLD, MirrorRecord, octaves_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.scheduler.budgets.mirrors import MirrorVerdict
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.tables import Tables

    Rows = npt.NDArray[Any]


Sample = tuple[int, int, int, int]
"""A row `counted`: content, PLD, number and octave."""

Hint = tuple[int, int, int, int]
"""A row `shared`: PLD, number, the other PLD and its octave."""

_NOBODY: Final = (-1, 0, 0)


def count_samples(tables: Tables, sampled: Rows, shared: Rows, share: float) -> tuple[list[Sample], int]:
    """Count samples of PLDs, note which of them are shared, and give verdicts.

    Args:
        tables: of the partition of these PLDs.
        sampled: of the dtype `records.contents.SAMPLED`, in the order of arrival.
        shared: of the dtype `records.contents.SHARED`.
        share: the share of a mirror's samples that are shared; above 0.

    Returns:
        What to tell the partitions of the contents, and by how many there are more mirrors.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed or is full.

    Cost: a look-up of the PLDs in two tables, and 2 us a row.
    """
    keys = np.unique(np.concatenate((sampled["pld"], shared["pld"])))
    plds = keys.tolist()
    octave_of = dict(zip(plds, octaves_of(tables.plds.values(keys)[1]["in_degree"]).tolist(), strict=True))
    _, before = tables.samples.values(keys)
    records = {pld: MirrorRecord(*values) for pld, values in zip(plds, before.tolist(), strict=True)}
    counted = [
        (content, pld, records[pld].count_sample(), octave_of[pld])
        for pld, content in sampled.tolist()
        if records[pld].note_content(content)
    ]
    for pld, number, other, octave in shared.tolist():
        # More PLDs may link to it by now than it was compared with.
        if (octave, other) > (octave_of[pld], pld):
            records[pld].note_shared(number, other)
    verdicts = {pld: record.verdict for pld, record in records.items() if record.judge(share)}
    for pld in [pld for pld, verdict in verdicts.items() if not verdict.is_mirror]:
        records[pld].begin_anew()
    after = np.array([record.values() for record in records.values()], dtype=RECORD)
    tables.commit(tables.samples, tables.samples.put(keys, after))
    return counted, _note_verdicts(tables, verdicts) if verdicts else 0


def _note_verdicts(tables: Tables, verdicts: dict[int, MirrorVerdict]) -> int:
    """Note verdicts that have changed, by PLD in ascending order. Whoever places a URL of the PLD tells them.

    Returns:
        By how many there are more mirrors. An import that was cut off may have brought samples without a verdict.
    """
    keys = np.array(list(verdicts), dtype=np.uint64)
    _, records = tables.mirrors.values(keys)
    before = int((records["state"] & MIRROR != 0).sum())
    records["state"] = records["state"] & TOLD | [MIRROR * verdict.is_mirror for verdict in verdicts.values()]
    for name in ("shared", "weighed", "other"):
        records[name] = [getattr(verdict, name) for verdict in verdicts.values()]
    tables.commit(tables.mirrors, tables.mirrors.put(keys, records))
    return int((records["state"] & MIRROR != 0).sum()) - before


def find_shared(tables: Tables, counted: Rows) -> list[Hint]:
    """Find the greatest PLD that has each content. Return a hint for each other one that has it.

    Args:
        tables: of the partition of these contents.
        counted: of the dtype `records.contents.COUNTED`, duplicates allowed.

    Raises:
        CorruptionError, OSError: as `count_samples`.

    Cost: a look-up of the contents, and 2 us a row.
    """
    keys = np.unique(counted["content"])
    found, sites = tables.sites.values(keys)
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
        tables.commit(tables.sites, tables.sites.put(np.array(changed, dtype=np.uint64), np.array(after, dtype=SITE)))
    hints = []
    for content, pld, number, _ in rows:
        octave, other, _ = greatest[content]
        if other != pld:
            hints.append((pld, number, other, octave))
    return hints


def only_sampled(tables: Tables, rows: TableRows) -> TableRows:
    """Return those rows of the table `mirrors` of another crawl that say what the records of samples here say.

    An export has the samples of a PLD before its verdict. Where this crawl has counted samples of the PLD before, it
    keeps its own record, so the verdict on that of the other crawl does not count: nothing here would ever change it.
    """
    if rows.values is None:
        return rows
    found, records = tables.samples.values(rows.keys)
    is_same = found & (records["state"] & MIRROR == rows.values["state"] & MIRROR)
    return rows._replace(keys=rows.keys[is_same], values=rows.values[is_same])


def count_new_mirrors(tables: Tables, rows: TableRows) -> int:
    """Return how many PLDs are mirrors by rows of another crawl, and have no record here yet."""
    if rows.values is None:
        return 0
    found, _ = tables.mirrors.values(rows.keys)
    return int((~found & (rows.values["state"] & MIRROR != 0)).sum())
