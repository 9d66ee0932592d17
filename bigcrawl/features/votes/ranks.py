"""Ranks of pages, as votes distribute them.

A page distributes 85 % of its rank in equal shares over the URLs that it links to. A URL's rank is what it has received
by its admission, plus 15 % of an average page's rank. So ranks are those of PageRank, in units of the average page,
computed by pushing each page's rank once, when the page is fetched.

Source: OPIC (Abiteboul, Preda and Cobena 2003), where a page distributes its cash when it is fetched, and the page with
most cash is fetched next. Differs: damping as in PageRank; each page distributes only once, so later cash stays with
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.features.votes.rows import SHARE_MAX, VOTES
from bigcrawl.scheduler.records.queued_url import ADMITTED_SHIFT

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    VoteArray = npt.NDArray[Any]

DAMPING: Final = 0.85
BASE: Final = 1 - DAMPING

NOT_GIVEN: Final = -(1 << 31)
"""A priority below all others: no page has given one."""

# Eight bits of `QueuedUrl.flags` of a URL in Redis: 0 if it has received no rank, else 4 log2(received) + 128.
_RECEIVED_MASK: Final = 0xFF << ADMITTED_SHIFT
_MIDDLE: Final = 128
_PER_OCTAVE: Final = 4


def sum_votes(rows: VoteArray, before: VoteArray, whose: npt.NDArray[np.intp]) -> VoteArray:
    after = before.copy()
    shares = np.bincount(whose, weights=rows["share"], minlength=len(before))
    after["received"] = np.minimum(before["received"] + shares, SHARE_MAX)
    np.maximum.at(after["given"], whose, rows["given"])
    return after


def share_of(received: float, links: int) -> float:
    return DAMPING * (BASE + received) / links


def codes_of(received: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Encode received ranks in 8 bits each: 0 for no rank, otherwise with an error of at most 9 %."""
    with np.errstate(divide="ignore"):
        octaves = np.log2(received.astype(np.float64))
    codes = np.clip(np.rint(octaves * _PER_OCTAVE) + _MIDDLE, 1, 0xFF)
    return np.where(received > 0, codes, 0).astype(np.int64)


def flags_with(flags: int, code: int) -> int:
    return flags & ~_RECEIVED_MASK | code << ADMITTED_SHIFT


def received_of(flags: int) -> float:
    code = (flags & _RECEIVED_MASK) >> ADMITTED_SHIFT
    return float(2.0 ** ((code - _MIDDLE) / _PER_OCTAVE)) if code else 0.0


def no_votes(keys: KeyArray) -> VoteArray:
    votes = np.zeros(len(keys), dtype=VOTES)
    votes["given"] = NOT_GIVEN
    return votes
