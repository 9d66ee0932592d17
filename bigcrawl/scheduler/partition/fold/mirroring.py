"""What a step learns of mirrors: samples of PLDs are counted, and compared with those of others (step 5).

See `bigcrawl.scheduler.budgets.mirrors`. The partition of a PLD counts its samples and hears which of them are shared;
that of a content finds the greater of the PLDs that have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.scheduler.budgets.mirrors import MIRROR, RECORD, SITE, MirrorRecord, octaves_of
from bigcrawl.scheduler.records.contents import COUNTED, SHARED

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.tables import Tables

    Rows = npt.NDArray[Any]


class Counted(NamedTuple):
    """Rows `counted` for the partitions of contents, and by how many there are more mirrors."""

    rows: Rows
    mirrors: int = 0


def count_samples(tables: Tables, sampled: Rows, shared: Rows, share: float) -> Counted:
    """Count samples of PLDs, note which of them are shared, and give verdicts.

    Args:
        tables: of the partition of these PLDs.
        sampled: of the dtype `records.contents.SAMPLED`, in the order of arrival.
        shared: of the dtype `records.contents.SHARED`.
        share: the share of a mirror's samples that are shared; above 0.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed or is full.

    Cost: a look-up of the PLDs in two tables, and 1 us a row.
    """
    keys = np.unique(np.concatenate((sampled["pld"], shared["pld"])))
    octaves = octaves_of(tables.plds.values(keys)[1]["in_degree"])
    records = {
        key: MirrorRecord(*values)
        for key, values in zip(keys.tolist(), tables.mirrors.values(keys)[1].tolist(), strict=True)
    }
    octave_of = dict(zip(records, octaves.tolist(), strict=True))
    counted = np.empty(len(sampled), dtype=COUNTED)
    counted["content"], counted["pld"] = sampled["content"], sampled["pld"]
    plds = sampled["pld"].tolist()
    counted["number"] = [records[pld].count_sample() for pld in plds]
    counted["octave"] = [octave_of[pld] for pld in plds]
    for pld, number, other, octave in shared.tolist():
        # More PLDs may link to it by now than it was compared with.
        if (octave, other) > (octave_of[pld], pld):
            records[pld].note_shared(number, other)
    mirrors = sum(record.judge(share) for record in records.values())
    after = np.array([record.values() for record in records.values()], dtype=RECORD)
    tables.commit(tables.mirrors, tables.mirrors.put(keys, after))
    return Counted(counted, mirrors)


def find_shared(tables: Tables, counted: Rows) -> Rows:
    """Find the greatest PLD that has each content. Return rows `shared` for all others that have it.

    Args:
        tables: of the partition of these contents.
        counted: of the dtype `records.contents.COUNTED`, duplicates allowed.

    Raises:
        CorruptionError, OSError: as `count_samples`.

    Cost: a look-up of the contents, and a sort of the rows.
    """
    keys = np.unique(counted["content"])
    found, sites = tables.sites.values(keys)
    before = np.empty(int(found.sum()), dtype=COUNTED)
    before["content"] = keys[found]
    for name in SITE.names or ():
        before[name] = sites[name][found]
    every = np.concatenate((before, counted))
    every = every[np.lexsort((every["number"], every["pld"], every["octave"], every["content"]))]
    is_last = np.append(every["content"][1:] != every["content"][:-1], [True])
    greatest = every[is_last]
    after = np.empty(len(keys), dtype=SITE)
    for name in SITE.names or ():
        after[name] = greatest[name]
    changed = ~found | (after != sites)
    if changed.any():
        tables.commit(tables.sites, tables.sites.put(keys[changed], after[changed]))
    others = greatest[np.searchsorted(keys, every["content"])]
    is_lesser = every["pld"] != others["pld"]
    shared = np.empty(int(is_lesser.sum()), dtype=SHARED)
    shared["pld"], shared["number"] = every["pld"][is_lesser], every["number"][is_lesser]
    shared["other"], shared["octave"] = others["pld"][is_lesser], others["octave"][is_lesser]
    return shared


def count_new_mirrors(tables: Tables, rows: TableRows) -> int:
    """Return how many PLDs are mirrors by rows of another crawl, and have no record here yet."""
    if rows.values is None:
        return 0
    found, _ = tables.mirrors.values(rows.keys)
    return int((~found & (rows.values["state"] & MIRROR != 0)).sum())
