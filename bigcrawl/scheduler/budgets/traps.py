"""Traps: domains whose newest URLs have the shape of a trap have a smaller budget (step 5), and nothing is dropped.

Whoever finds a URL marks its shape (`bigcrawl.url.shape`); the marks travel in its flags. The partition that all
URLs of a PLD are in counts them as the URLs turn out to be new, in windows: when `WINDOW` new URLs of a PLD have
come, the marks among them are weighed, and a new window begins.

    free      -> caught    a window in which marked URLs are at least BIGCRAWL_TRAP_SHARE
    caught    -> free      a window in which they are less

What nodes find out of a PLD's pages and names catches it too: `budgets.same_content`, `budgets.wildcard_dns`.

The budget of a PLD that is caught is divided by BIGCRAWL_TRAP_DIVISOR, down to 1; one that is set by hand is not
touched. A PLD has a record, in the table `traps`, from its first marked URL on, so most have none; a step in which
no PLD has one, and no URL is marked, costs a look at the flags.
Source: IRLbot §1.2, §5: no URL is judged, budgets limit what a domain gets. Differs: the shape of URLs lowers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.scheduler.records.queued_url import RANGES_SHIFT, TRAP_SHIFT
from bigcrawl.url.shape import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

    DivisorArray = npt.NDArray[np.uint32]

WINDOW: Final = 256
"""New URLs of a PLD that are weighed together: enough that an archive's few calendar pages are a small share."""

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
"""Of a PLD: new URLs of this window, those marked, and by kind; the same of the last one; what has caught the PLD,
`BY_SHAPE` and `BY_WILDCARD` together; pages of a window that had the content of others, 0 where they are few."""

BY_SHAPE: Final = 1
BY_WILDCARD: Final = 2

_FLAGS: Final = (1 << RANGES_SHIFT) - 1  # those above are not of shapes
_NOW: Final = ("urls", "marked", *KINDS)


class TrapRules(NamedTuple):
    """What makes a PLD caught, and what that means; `share` 0 turns traps off."""

    share: float = 0.0
    divisor: int = 1


NO_TRAPS = TrapRules()


class Standing(NamedTuple):
    """How a PLD stands, for whoever asks.

    Attributes:
        is_caught: whether its budget is divided.
        urls: new URLs of the last window; 0 when none was full yet.
        marked: those of them that had the shape of a trap.
        kinds: how many, by kind; a URL may be of several.
        same: pages among 64 that had the content of others; 0 where they are few.
        is_wildcard: whether DNS answers for every name of it.
    """

    is_caught: bool
    urls: int
    marked: int
    kinds: dict[str, int]
    same: int = 0
    is_wildcard: bool = False


def standing_of(record: npt.NDArray[np.void]) -> Standing:
    """Return what one record says."""
    kinds = {kind: int(record[f"last_{kind}"]) for kind in KINDS if record[f"last_{kind}"]}
    same = int(record["same"])
    is_caught, is_wildcard = bool(record["caught"]) or same > 0, bool(record["caught"] & BY_WILDCARD)
    return Standing(is_caught, int(record["last_urls"]), int(record["last_marked"]), kinds, same, is_wildcard)


class Turned(NamedTuple):
    """A PLD by name that is taken for a trap from now on, or not any more."""

    pld: str
    standing: Standing


class Noted(NamedTuple):
    """What new URLs have changed: records by the keys of PLDs; and of each PLD that turned, a URL's index."""

    plds: KeyArray
    records: ValueArray
    turned: list[tuple[int, Standing]]


def standing_text(standing: Standing) -> str:
    """Say what the last window was: `240 of its last 256 new URLs look like a trap's (calendar 240)`."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in standing.kinds.items())
    shapes = f"{standing.marked:,} of its last {standing.urls:,} new URLs look like a trap's ({kinds or 'none'})"
    same = f"about {standing.same} of its last 64 pages had the content of others"
    wildcard = "DNS has an address for any name of it"
    said = ((standing.urls, shapes), (standing.same, same), (standing.is_wildcard, wildcard))
    return "; ".join([text for is_so, text in said if is_so])


def turned_text(turned: Turned, rules: TrapRules) -> str:
    """Say it to the operator."""
    pld, standing = turned
    if not standing.is_caught:
        return f"{pld} is taken for a trap no longer and has its whole budget again: {standing_text(standing)}"
    return f"{pld} is taken for a trap and its budget divided by {rules.divisor}: {standing_text(standing)}"


class Traps:
    """What a step notes of new URLs, and what budgets are divided by; the caller commits what `note` changed."""

    def __init__(self, table: Bucket, rules: TrapRules) -> None:
        self._table = table
        self._rules = rules

    def __repr__(self) -> str:
        return f"<Traps {self._rules!r} {self._table!r}>"

    def note(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> Noted | None:
        """Count new URLs and weigh the windows that are full.

        Args:
            urls: n of them, which are new.
            plds: key of each one's PLD, shape (n,).

        Returns:
            What has changed, to be put into the table; None when nothing has.

        Cost: 0.1 us a URL where nothing is marked; else a look-up of the PLDs, and 60 us.
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
        turned = [(int(np.argmax(whose == at)), standing_of(records[at])) for at in changed]
        return Noted(keys[concerned], records[concerned], turned)

    def divisors(self, plds: KeyArray) -> DivisorArray | None:
        """Return what the budgets of PLDs are to be divided by; None when none is caught."""
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
    """Return keys and records as they are with these verdicts, to be put into the table; None when nothing changes."""
    found, records = table.values(plds)
    changed = (found | (same > 0)) & (records["same"] != same)
    if not changed.any():
        return None
    records["same"] = same
    return plds[changed], records[changed]


def note_wildcards(table: Bucket, plds: KeyArray, found: npt.NDArray[np.integer]) -> tuple[KeyArray, ValueArray] | None:
    """Return keys and records as they are when DNS answers for every name (1) or not (0); None when nothing changes."""
    _, records = table.values(plds)
    caught = records["caught"] & ~np.uint32(BY_WILDCARD) | (found != 0) * np.uint32(BY_WILDCARD)
    changed = caught != records["caught"]
    if not changed.any():
        return None
    records["caught"] = caught
    return plds[changed], records[changed]


def divided(budgets: npt.NDArray[np.uint32], divisors: DivisorArray) -> npt.NDArray[np.uint32]:
    """Return budgets divided, those above 0 down to 1."""
    fewer: npt.NDArray[np.uint32] = np.minimum(budgets, np.maximum(budgets // divisors, 1))
    return fewer
