"""Finds contents nearly equal to those of other pages, in a map of DRUM.

A key is a band of a content; the value is the content, a page with it, and its sketch. Of two contents that share a
band and have similar sketches, the one with the larger key is a near copy of the other, which has the record. So two
contents are never copies of each other, in any order and in any map. A dissimilar content with the same band takes the
first free of `SLOTS` derived keys. An enemy can make any page a near copy, so a verdict changes nothing
(docs/copies.md).

Source: Manku, Jain, Das Sarma, Detecting Near-Duplicates for Web Crawling (2007). Differs: min-wise hashes instead of
simhash, and one look-up per band instead of a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.content.exact_copies import mix_bits
from bigcrawl.content.sketched import ALIKE, VALUE
from bigcrawl.content.sketches import are_alike

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from bigcrawl.drum.bucket import ApplyResult, Bucket

    Rows = npt.NDArray[Any]

SLOTS: Final = 3


class NearCopies(NamedTuple):
    """Verdicts in no particular order: contents, a page with each, and the page that each nearly copies."""

    contents: Rows
    pages: Rows
    originals: Rows


class _FoundCopies(NamedTuple):
    copies: Rows
    originals: Rows


def find_near(
    table: Bucket, rows: Rows, commit: Callable[[ApplyResult], None], similarity: float = ALIKE
) -> NearCopies:
    """Find near copies among these contents and earlier ones, and add the others.

    Repeated rows get the same verdicts. Contents of one page are never copies of each other. `commit` is called once
    per slot. Sketches are similar if they show at least `similarity`.
    """
    found: list[_FoundCopies] = []
    left = rows
    for slot in range(SLOTS):
        if not len(left):
            break
        keys = left["band"] if slot == 0 else mix_bits(left["band"] + np.uint64(slot))
        left = _ask_slot(table, keys, left, found, commit, similarity)
    copies = [verdict.copies for verdict in found]
    originals = [verdict.originals for verdict in found]
    if not copies:
        return NearCopies(*(np.empty(0, dtype=np.uint64),) * 3)
    of_all = np.concatenate(copies)
    return NearCopies(of_all["content"], of_all["page"], np.concatenate(originals)["page"])


def _ask_slot(
    table: Bucket,
    keys: Rows,
    rows: Rows,
    found: list[_FoundCopies],
    commit: Callable[[ApplyResult], None],
    similarity: float,
) -> Rows:
    distinct, first, whose, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    was_there, held = table.values(distinct)
    is_new = ~was_there
    held[is_new] = _values_of(rows[first[is_new]])
    is_shared = was_there | (times > 1)
    if not is_shared.any():
        commit(table.put(distinct, held))
        return rows[:0]
    where = is_shared[whose]
    whose_shared = (np.cumsum(is_shared) - 1)[whose[where]]
    after, left = _compare_with_held(held[is_shared], rows[where], whose_shared, found, similarity)
    changed = is_new
    changed[is_shared] |= after["content"] != held["content"][is_shared]
    held[is_shared] = after
    if changed.any():
        commit(table.put(distinct[changed], held[changed]))
    return left


def _compare_with_held(
    held: Rows, rows: Rows, whose: npt.NDArray[np.intp], found: list[_FoundCopies], similarity: float
) -> tuple[Rows, Rows]:
    given = _values_of(rows)
    before = held[whose]
    alike_before = are_alike(before["sketch"], given["sketch"], similarity)
    after = _least_of(held, given, whose, alike_before & (given["page"] != before["page"]))
    is_replaced = after["content"] != held["content"]
    record = after[whose]
    alike = are_alike(record["sketch"], given["sketch"], similarity)
    _add_copies(found, held[is_replaced], after[is_replaced])
    _add_copies(found, given[alike], record[alike])
    # These are similar to the old record, but not to its replacement.
    rest = alike_before & ~alike
    _add_copies(found, given[rest], before[rest])
    is_known = alike & ((given["content"] >= record["content"]) | (given["page"] == record["page"]))
    is_known |= alike_before & ((given["content"] >= before["content"]) | (given["page"] == before["page"]))
    return after, rows[~is_known]


def _values_of(rows: Rows) -> Rows:
    values = np.empty(len(rows), dtype=VALUE)
    for name in ("content", "page", "sketch"):
        values[name] = rows[name]
    return values


def _least_of(held: Rows, given: Rows, whose: npt.NDArray[np.intp], may_replace: npt.NDArray[np.bool_]) -> Rows:
    least = held["content"].copy()
    np.minimum.at(least, whose[may_replace], given["content"][may_replace])
    is_least = may_replace & (given["content"] == least[whose]) & (least[whose] < held["content"][whose])
    after = held.copy()
    after[whose[is_least][::-1]] = given[is_least][::-1]  # the first of equal contents
    return after


def _add_copies(found: list[_FoundCopies], some: Rows, others: Rows) -> None:
    is_copy = (some["content"] > others["content"]) & (some["page"] != others["page"])
    if is_copy.any():
        found.append(_FoundCopies(some[is_copy], others[is_copy]))
