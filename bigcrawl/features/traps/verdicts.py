"""Traps: a PLD whose newest URLs are shaped like those of a trap gets a smaller budget. No URL is dropped.

The node that discovers a URL puts the traits of its shape (`shape`) into its flags. The PLD's partition counts URLs
with traits ("marked") in windows of `WINDOW` new URLs. A PLD is caught if their share in a window reaches
BIGCRAWL_TRAP_SHARE, and freed if it does not. It is also caught by nodes' observations (`same_content`,
`wildcard_dns`). A PLD gets a record with its first marked URL, so most PLDs have none.

Source: IRLbot §1.2, §5: no URL is judged; budgets limit what a domain gets. Differs: the shape of a domain's URLs
lowers its budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.features.traps.shape import KINDS
from bigcrawl.scheduler.records.outcomes import pack_mark
from bigcrawl.scheduler.records.queued_url import LISTED_SHIFT, TRAITS_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

    DivisorArray = npt.NDArray[np.uint32]

WINDOW: Final = 256
"""How many new URLs of a PLD are weighed together: so many that an archive's few calendar pages are a small share."""

RECORD: Final = np.dtype(
    [
        ("urls", "<u4"),
        ("marked", "<u4"),
        *((kind, "<u4") for kind in KINDS),
        ("last_urls", "<u4"),
        ("last_marked", "<u4"),
        *((f"last_{kind}", "<u4") for kind in KINDS),
        ("caught", "<u4"),
        ("same", "<u4"),
    ]
)
"""The record of a PLD: its new URLs, marked URLs, and marked URLs by kind, in this window and in the last one; the bits
`BY_SHAPE` and `BY_WILDCARD`; and how many pages of a window had the content of another, 0 if few."""

SAME_CONTENT: Final = 1901
"""The code of a mark whose detail is the number of pages in a window with the content of another; 0 if few."""

WILDCARD: Final = 1902
"""The code of a mark whose detail is 1 if DNS answers for all names below the PLD, 0 if it no longer does."""

BY_SHAPE: Final = 1
BY_WILDCARD: Final = 2

_FLAGS: Final = (1 << LISTED_SHIFT) - 1  # higher bits are not shapes
_NOW: Final = ("urls", "marked", *KINDS)


class TrapRules(NamedTuple):
    share: float = 0.0
    divisor: int = 1


class TrapVerdict(NamedTuple):
    """The verdict on a PLD, for display.

    Attributes:
        urls: new URLs in the last window; 0 before the first full one.
        marked: how many of these were shaped like a trap's.
        kinds: number of marked URLs by kind; a URL may be of several.
        same: number of pages, of 64, with the same content as another; 0 if few.
    """

    is_caught: bool
    urls: int
    marked: int
    kinds: dict[str, int]
    same: int = 0
    is_wildcard: bool = False


def trap_verdict_of(record: npt.NDArray[np.void]) -> TrapVerdict:
    kinds = {kind: int(record[f"last_{kind}"]) for kind in KINDS if record[f"last_{kind}"]}
    same = int(record["same"])
    is_caught, is_wildcard = bool(record["caught"]) or same > 0, bool(record["caught"] & BY_WILDCARD)
    return TrapVerdict(is_caught, int(record["last_urls"]), int(record["last_marked"]), kinds, same, is_wildcard)


class TrapUpdate(NamedTuple):
    """PLD keys with their new records; and for each PLD caught or freed, the index of a URL and the verdict."""

    plds: KeyArray
    records: ValueArray
    changes: list[tuple[int, TrapVerdict]]


def trap_verdict_text(verdict: TrapVerdict) -> str:
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in verdict.kinds.items())
    shapes = f"{verdict.marked:,} of its last {verdict.urls:,} new URLs look like a trap's ({kinds or 'none'})"
    same = f"about {verdict.same} of its last 64 pages had the content of others"
    wildcard = "DNS has an address for any name of it"
    parts = ((verdict.urls, shapes), (verdict.same, same), (verdict.is_wildcard, wildcard))
    return "; ".join([text for is_so, text in parts if is_so])


def trap_change_text(pld: str, verdict: TrapVerdict, rules: TrapRules) -> str:
    if not verdict.is_caught:
        return f"{pld} is taken for a trap no longer and has its whole budget again: {trap_verdict_text(verdict)}"
    return f"{pld} is taken for a trap and its budget divided by {rules.divisor}: {trap_verdict_text(verdict)}"


def record_shapes(table: Bucket, urls: Sequence[QueuedUrl], plds: KeyArray, rules: TrapRules) -> TrapUpdate | None:
    if not urls:
        return None
    traits = (np.array([url.flags for url in urls], dtype=np.int64) & _FLAGS) >> TRAITS_SHIFT
    is_marked = traits != 0
    if not len(table) and not is_marked.any():
        return None
    keys, whose = np.unique(plds, return_inverse=True)
    found, records = table.values(keys)
    marked = np.bincount(whose[is_marked], minlength=len(keys))
    concerned = found | (marked > 0)
    if not concerned.any():
        return None
    records["urls"] += np.bincount(whose, minlength=len(keys)).astype(np.uint32)
    records["marked"] += marked.astype(np.uint32)
    for at, kind in enumerate(KINDS):
        of_kind = traits >> at & 1 != 0
        if of_kind.any():
            records[kind] += np.bincount(whose[of_kind], minlength=len(keys)).astype(np.uint32)
    before = records["caught"].copy()
    _update_verdicts(records, concerned, rules.share)
    changed = np.flatnonzero((records["caught"] != 0) != (before != 0))
    changes = [(int(np.argmax(whose == at)), trap_verdict_of(records[at])) for at in changed]
    return TrapUpdate(keys[concerned], records[concerned], changes)


def _update_verdicts(records: ValueArray, concerned: npt.NDArray[np.bool_], share: float) -> None:
    full = concerned & (records["urls"] >= WINDOW)
    if not full.any():
        return
    by_shape = records["marked"] >= share * records["urls"]
    records["caught"][full] = (records["caught"] & ~np.uint32(BY_SHAPE) | by_shape * np.uint32(BY_SHAPE))[full]
    for field in _NOW:
        records[f"last_{field}"][full] = records[field][full]
        records[field][full] = 0


def divisors_of_traps(table: Bucket, plds: KeyArray, rules: TrapRules) -> DivisorArray | None:
    if not len(table) or not len(plds):
        return None
    keys, whose = np.unique(plds, return_inverse=True)
    _, records = table.values(keys)
    caught = (records["caught"] != 0) | (records["same"] != 0)
    if not caught.any():
        return None
    divisors: DivisorArray = np.where(caught, rules.divisor, 1).astype(np.uint32)[whose]
    return divisors


def pack_same_content(pld: int, same: int) -> bytes:
    return pack_mark(pld, SAME_CONTENT, same)


def pack_wildcard(pld: int, *, found: bool) -> bytes:
    return pack_mark(pld, WILDCARD, found)


def record_same_content(
    table: Bucket, plds: KeyArray, same: npt.NDArray[np.integer]
) -> tuple[KeyArray, ValueArray] | None:
    found, records = table.values(plds)
    changed = (found | (same > 0)) & (records["same"] != same)
    if not changed.any():
        return None
    records["same"] = same
    return plds[changed], records[changed]


def record_wildcards(
    table: Bucket, plds: KeyArray, found: npt.NDArray[np.integer]
) -> tuple[KeyArray, ValueArray] | None:
    _, records = table.values(plds)
    caught = records["caught"] & ~np.uint32(BY_WILDCARD) | (found != 0) * np.uint32(BY_WILDCARD)
    changed = caught != records["caught"]
    if not changed.any():
        return None
    records["caught"] = caught
    return plds[changed], records[changed]
