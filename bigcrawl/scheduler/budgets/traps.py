"""Traps: a PLD whose newest URLs are shaped like those of a trap gets a smaller budget (step 5). No URL is dropped.

The node that discovers a URL marks its shape (`bigcrawl.url.shape`), and the marks travel in the URL's flags. All URLs
of a PLD belong to one partition, which counts the marks of new URLs in windows. After `WINDOW` new URLs of a PLD, it
weighs the marks and begins a new window.

    free      -> caught    the share of marked URLs in a window is at least BIGCRAWL_TRAP_SHARE
    caught    -> free      the share in a window is smaller

A PLD is also caught by what nodes observe in its pages and names: `budgets.same_content`, `budgets.wildcard_dns`. One
whose pages are those of another PLD is no trap but a mirror, see `budgets.mirrors`.

The budget of a caught PLD is divided by BIGCRAWL_TRAP_DIVISOR, but not below 1. A budget set by hand is not changed. A
PLD gets a record in the table `traps` with its first marked URL, so most PLDs have none. A step without records and
without marked URLs only costs a check of the flags.
Source: IRLbot §1.2, §5: no URL is judged, budgets limit what a domain gets. Differs: the shape of URLs lowers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.scheduler.records.queued_url import LISTED_SHIFT, TRAP_SHIFT
from bigcrawl.url.shape import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

    DivisorArray = npt.NDArray[np.uint32]

WINDOW: Final = 256
"""New URLs of a PLD that are weighed together; enough that the few calendar pages of an archive are a small share."""

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
"""The record of a PLD: new URLs in this window, marked ones, and marked ones by kind; the same for the last window;
what has caught the PLD, as bits `BY_SHAPE` and `BY_WILDCARD`; pages of a window with the content of others, 0 for few.
"""

BY_SHAPE: Final = 1
BY_WILDCARD: Final = 2

_FLAGS: Final = (1 << LISTED_SHIFT) - 1  # higher bits are not shapes
_NOW: Final = ("urls", "marked", *KINDS)


class TrapRules(NamedTuple):
    """When a PLD is caught, and by what its budget is then divided. A `share` of 0 disables traps."""

    share: float = 0.0
    divisor: int = 1


NO_TRAPS = TrapRules()


class TrapVerdict(NamedTuple):
    """The verdict on a PLD, for display.

    Attributes:
        is_caught: whether its budget is divided.
        urls: new URLs in the last window; 0 before the first full one.
        marked: how many of them were shaped like a trap's.
        kinds: how many, by kind; a URL may be of several.
        same: pages among 64 with the same content as another; 0 for few.
        is_wildcard: whether DNS answers for every name below it.
    """

    is_caught: bool
    urls: int
    marked: int
    kinds: dict[str, int]
    same: int = 0
    is_wildcard: bool = False


def trap_verdict_of(record: npt.NDArray[np.void]) -> TrapVerdict:
    """Return the verdict that a record holds."""
    kinds = {kind: int(record[f"last_{kind}"]) for kind in KINDS if record[f"last_{kind}"]}
    same = int(record["same"])
    is_caught, is_wildcard = bool(record["caught"]) or same > 0, bool(record["caught"] & BY_WILDCARD)
    return TrapVerdict(is_caught, int(record["last_urls"]), int(record["last_marked"]), kinds, same, is_wildcard)


class TrapChange(NamedTuple):
    """The name of a PLD that was just classified as a trap, or is one no longer, and why."""

    pld: str
    verdict: TrapVerdict


class TrapUpdate(NamedTuple):
    """The changes that new URLs made: PLD keys with their new records; for each PLD caught or freed, a URL's index."""

    plds: KeyArray
    records: ValueArray
    changes: list[tuple[int, TrapVerdict]]


def trap_verdict_text(verdict: TrapVerdict) -> str:
    """Describe the last window: `240 of its last 256 new URLs look like a trap's (calendar 240)`."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in verdict.kinds.items())
    shapes = f"{verdict.marked:,} of its last {verdict.urls:,} new URLs look like a trap's ({kinds or 'none'})"
    same = f"about {verdict.same} of its last 64 pages had the content of others"
    wildcard = "DNS has an address for any name of it"
    parts = ((verdict.urls, shapes), (verdict.same, same), (verdict.is_wildcard, wildcard))
    return "; ".join([text for is_so, text in parts if is_so])


def trap_change_text(change: TrapChange, rules: TrapRules) -> str:
    """Describe a PLD that was caught or freed, for the operator."""
    pld, verdict = change
    if not verdict.is_caught:
        return f"{pld} is taken for a trap no longer and has its whole budget again: {trap_verdict_text(verdict)}"
    return f"{pld} is taken for a trap and its budget divided by {rules.divisor}: {trap_verdict_text(verdict)}"


class Traps:
    """Counts marked URLs and returns budget divisors. The caller commits the changes that `note` returns."""

    def __init__(self, table: Bucket, rules: TrapRules) -> None:
        self._table = table
        self._rules = rules

    def __repr__(self) -> str:
        return f"<Traps {self._rules!r} {self._table!r}>"

    def note(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> TrapUpdate | None:
        """Count new URLs and weigh the windows that are full.

        Args:
            urls: n new URLs.
            plds: key of each one's PLD, shape (n,).

        Returns:
            The changes to put into the table, or None.

        Cost: 0.1 us a URL if nothing is marked; otherwise a look-up of the PLDs, and 60 us.
        """
        if not self._rules.share or not urls:
            return None
        marks = (np.array([url.flags for url in urls], dtype=np.int64) & _FLAGS) >> TRAP_SHIFT
        is_marked = marks != 0
        if not len(self._table) and not is_marked.any():
            return None
        keys, whose = np.unique(plds, return_inverse=True)
        found, records = self._table.values(keys)
        marked = np.bincount(whose[is_marked], minlength=len(keys))
        concerned = found | (marked > 0)
        if not concerned.any():
            return None
        records["urls"] += np.bincount(whose, minlength=len(keys)).astype(np.uint32)
        records["marked"] += marked.astype(np.uint32)
        for at, kind in enumerate(KINDS):
            of_kind = marks >> at & 1 != 0
            if of_kind.any():
                records[kind] += np.bincount(whose[of_kind], minlength=len(keys)).astype(np.uint32)
        before = records["caught"].copy()
        self._weigh(records, concerned)
        changed = np.flatnonzero((records["caught"] != 0) != (before != 0))
        changes = [(int(np.argmax(whose == at)), trap_verdict_of(records[at])) for at in changed]
        return TrapUpdate(keys[concerned], records[concerned], changes)

    def divisors(self, plds: KeyArray) -> DivisorArray | None:
        """Return the divisors of PLDs' budgets, or None if no PLD is caught."""
        if not self._rules.share or not len(self._table) or not len(plds):
            return None
        keys, whose = np.unique(plds, return_inverse=True)
        _, records = self._table.values(keys)
        caught = (records["caught"] != 0) | (records["same"] != 0)
        if not caught.any():
            return None
        divisors: DivisorArray = np.where(caught, self._rules.divisor, 1).astype(np.uint32)[whose]
        return divisors

    def _weigh(self, records: ValueArray, concerned: npt.NDArray[np.bool_]) -> None:
        full = concerned & (records["urls"] >= WINDOW)
        if not full.any():
            return
        by_shape = records["marked"] >= self._rules.share * records["urls"]
        records["caught"][full] = (records["caught"] & ~np.uint32(BY_SHAPE) | by_shape * np.uint32(BY_SHAPE))[full]
        for field in _NOW:
            records[f"last_{field}"][full] = records[field][full]
            records[field][full] = 0


def note_same_content(
    table: Bucket, plds: KeyArray, same: npt.NDArray[np.integer]
) -> tuple[KeyArray, ValueArray] | None:
    """Return the keys and records that these verdicts change, to put into the table, or None."""
    found, records = table.values(plds)
    changed = (found | (same > 0)) & (records["same"] != same)
    if not changed.any():
        return None
    records["same"] = same
    return plds[changed], records[changed]


def note_wildcards(table: Bucket, plds: KeyArray, found: npt.NDArray[np.integer]) -> tuple[KeyArray, ValueArray] | None:
    """Return the keys and records changed by verdicts on DNS for every name, yes (1) or no (0), or None."""
    _, records = table.values(plds)
    caught = records["caught"] & ~np.uint32(BY_WILDCARD) | (found != 0) * np.uint32(BY_WILDCARD)
    changed = caught != records["caught"]
    if not changed.any():
        return None
    records["caught"] = caught
    return plds[changed], records[changed]
