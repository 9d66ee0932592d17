"""Finds contents that are nearly those of other pages, in a map of DRUM that is asked in batches.

The map has a record for each band of a content that no other is known for: its key is the band, its value the content,
the page that has it, and its sketch. Of two contents that share a band and whose sketches are similar enough, the one
with the larger key is a near copy of the other, whichever came first, and the other one has the record. So two contents
are never copies of each other, in whatever order they came to which map. A content with the same band that is not
similar takes one of `SLOTS` keys that are made of it, the first free one.

An enemy can have any page called a near copy of theirs, so nothing acts on a verdict: see docs/copies.md.

The rows of a content may lie in different maps, by their bands. Each map finds a near copy by its own rows.
Source: Manku, Jain, Das Sarma, Detecting Near-Duplicates for Web Crawling (2007), whose tables by parts of a
fingerprint these are. Differs: min-wise hashes instead of simhash, and one look-up a band instead of a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.content.shingles import mixed
from bigcrawl.content.sketches import ALIKE_MIN, SKETCH_WORDS, places_alike
from bigcrawl.drum.bucket import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from bigcrawl.drum.bucket import ApplyResult, Bucket

    Rows = npt.NDArray[Any]

SLOTS: Final = 3
"""How many contents may have a record for one band."""

_SKETCHED: Final = [("content", "<u8"), ("page", "<u8"), ("sketch", "<u8", (SKETCH_WORDS,))]
VALUE: Final = np.dtype(_SKETCHED)
ROW: Final = np.dtype([("band", "<u8"), *_SKETCHED])
"""What a batch asks: a row for each band of a content, with a page that has it; its sketch is packed."""

NEAR: Final = Kind("near", VALUE, fresh_max=1024)
"""The kind of the map."""


class NearCopies(NamedTuple):
    """Verdicts, in no order that means anything; all of shape (n,), a content may be in several.

    Attributes:
        contents: the contents that are near copies.
        pages: a page with each of them.
        originals: the page whose content each is nearly the same as.
    """

    contents: Rows
    pages: Rows
    originals: Rows


class _Found(NamedTuple):
    """Rows of which the second is the original of the first."""

    copies: Rows
    originals: Rows


def find_near(table: Bucket, rows: Rows, commit: Callable[[ApplyResult], None]) -> NearCopies:
    """Find the near copies among contents and those before them, and add the contents that are none.

    Args:
        table: of kind `NEAR`.
        rows: of dtype `ROW`, shape (n,), in the order of arrival, duplicates allowed.
        commit: adopts a result in the table; it is called once for each slot that was used.

    Returns:
        Verdicts. They are the same when rows come again. Contents of the same page are never copies of each other.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed or is full.

    Cost: that of `Bucket.values` for each slot in use.
    """
    found: list[_Found] = []
    left = rows
    for slot in range(SLOTS):
        if not len(left):
            break
        keys = left["band"] if slot == 0 else mixed(left["band"] + np.uint64(slot))
        left = _ask_slot(table, keys, left, found, commit)
    copies = [verdict.copies for verdict in found]
    originals = [verdict.originals for verdict in found]
    if not copies:
        return NearCopies(*(np.empty(0, dtype=np.uint64),) * 3)
    of_all = np.concatenate(copies)
    return NearCopies(of_all["content"], of_all["page"], np.concatenate(originals)["page"])


def _ask_slot(
    table: Bucket, keys: Rows, rows: Rows, found: list[_Found], commit: Callable[[ApplyResult], None]
) -> Rows:
    """Ask the records with these keys, note verdicts, and write records. Return the rows to ask the next slot for."""
    distinct, first, whose, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    was_there, held = table.values(distinct)
    is_new = ~was_there
    held[is_new] = _values_of(rows[first[is_new]])
    is_shared = was_there | (times > 1)  # most bands are nobody else's, and need no more than a record
    if not is_shared.any():
        commit(table.put(distinct, held))
        return rows[:0]
    where = is_shared[whose]
    after, left = _compare(held[is_shared], rows[where], (np.cumsum(is_shared) - 1)[whose[where]], found)
    changed = is_new
    changed[is_shared] |= after["content"] != held["content"][is_shared]
    held[is_shared] = after
    if changed.any():
        commit(table.put(distinct[changed], held[changed]))
    return left


def _compare(held: Rows, rows: Rows, whose: npt.NDArray[np.intp], found: list[_Found]) -> tuple[Rows, Rows]:
    """Compare rows with the records that are held, by their numbers. Return the records after, and the rows left."""
    given = _values_of(rows)
    before = held[whose]
    alike_before = _are_alike(before, given)
    after = _least_of(held, given, whose, alike_before & (given["page"] != before["page"]))
    is_replaced = after["content"] != held["content"]
    record = after[whose]
    alike = _are_alike(record, given)
    _note(found, held[is_replaced], after[is_replaced])
    _note(found, given[alike], record[alike])
    # Alike the one before, but not the one that has replaced it.
    rest = alike_before & ~alike
    _note(found, given[rest], before[rest])
    is_known = alike & ((given["content"] >= record["content"]) | (given["page"] == record["page"]))
    is_known |= alike_before & ((given["content"] >= before["content"]) | (given["page"] == before["page"]))
    return after, rows[~is_known]


def _values_of(rows: Rows) -> Rows:
    values = np.empty(len(rows), dtype=VALUE)
    for name in ("content", "page", "sketch"):
        values[name] = rows[name]
    return values


def _least_of(held: Rows, given: Rows, whose: npt.NDArray[np.intp], may_replace: npt.NDArray[np.bool_]) -> Rows:
    """Return the records with the least contents: those that are held, or given rows that may replace them."""
    least = held["content"].copy()
    np.minimum.at(least, whose[may_replace], given["content"][may_replace])
    is_least = may_replace & (given["content"] == least[whose]) & (least[whose] < held["content"][whose])
    after = held.copy()
    after[whose[is_least][::-1]] = given[is_least][::-1]  # of equal contents, the first
    return after


def _note(found: list[_Found], some: Rows, others: Rows) -> None:
    """Note which of some contents are copies of the others, to which they are similar: those with larger keys."""
    is_copy = (some["content"] > others["content"]) & (some["page"] != others["page"])
    if is_copy.any():
        found.append(_Found(some[is_copy], others[is_copy]))


def _are_alike(some: Rows, others: Rows) -> npt.NDArray[np.bool_]:
    alike: npt.NDArray[np.bool_] = places_alike(some["sketch"], others["sketch"]) >= ALIKE_MIN
    return alike
