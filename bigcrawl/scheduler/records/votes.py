"""Votes: what the links of a page say of the URLs that they lead to (before step 3, and step 5).

A page hands on 85 % of its rank in equal shares, one for each URL that it links to. A URL's own rank is what it has
received when it is admitted, and 15 % of an average page's. So ranks are those of PageRank, in units of the average
page, computed by pushing each page's rank once, when it is fetched. A vote also says which priority the spider gave the
link; of several the highest counts.

On the wire a vote is a row: u64 key of the URL | f32 share | i32 priority, little-endian. The table `votes` maps the
key to the sum of shares and the highest priority (`VOTES`). While a URL is in Redis, 8 bits of its flags hold what it
has received, a quarter of an octave each, so that its node knows the rank of the page.

Source: OPIC (Abiteboul, Preda and Cobena 2003), where a page hands its cash on as it is fetched, and the page with most
cash is fetched next. Differs: damping as in PageRank; a page that is fetched once hands on only once, so what comes
later stays with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    VoteArray = npt.NDArray[Any]

DAMPING: Final = 0.85
BASE: Final = 1 - DAMPING

VOTES: Final = np.dtype([("received", "<f4"), ("given", "<i4")])
"""The value of a URL in the table `votes`."""

NOT_GIVEN: Final = -(1 << 31)
"""A priority below all others: no page has given one."""

_ROWS: Final = np.dtype([("key", "<u8"), ("share", "<f4"), ("given", "<i4")])
VOTE_BYTES: Final = _ROWS.itemsize

_SHARE_MAX: Final = 1e9  # more than any crawl has pages; a sum of them stays finite

# `QueuedUrl.flags`: what a URL in Redis has received; 0 for nothing, else 4 log2(received) + 128.
RECEIVED_SHIFT: Final = 24
_RECEIVED_MASK: Final = 0xFF << RECEIVED_SHIFT
_MIDDLE: Final = 128
_PER_OCTAVE: Final = 4


class VotesFormatError(BigcrawlError):
    """The bytes are not votes."""


def pack_votes(votes: Sequence[tuple[int, float, int]]) -> bytes:
    """Return votes, each (key, share, priority), as rows of bytes for the inbox. Cost: 0.3 us each."""
    return np.array(votes, dtype=_ROWS).tobytes()


def unpack_votes(data: bytes) -> VoteArray:
    """Return the rows that `pack_votes` packed: key, share and given.

    Raises:
        VotesFormatError: the bytes are not whole rows, or a share is no share.
    """
    if len(data) % VOTE_BYTES:
        raise VotesFormatError(f"votes take {VOTE_BYTES} bytes each; these are {len(data)} bytes")
    rows = np.frombuffer(data, dtype=_ROWS)
    if not ((rows["share"] >= 0) & (rows["share"] <= _SHARE_MAX)).all():
        raise VotesFormatError(f"a share is not between 0 and {_SHARE_MAX:g}")
    return rows


def summed(rows: VoteArray, before: VoteArray, whose: npt.NDArray[np.intp]) -> VoteArray:
    """Return what URLs have after these votes.

    Args:
        rows: shape (n,), as unpacked.
        before: of `VOTES`, shape (m,): what the m URLs had; `NOT_GIVEN` for those without a vote.
        whose: shape (n,): the place of each row's URL.
    """
    after = before.copy()
    shares = np.bincount(whose, weights=rows["share"], minlength=len(before))
    after["received"] = np.minimum(before["received"] + shares, _SHARE_MAX)
    np.maximum.at(after["given"], whose, rows["given"])
    return after


def share_of(received: float, links: int) -> float:
    """Return what each link of a page hands on that has received so much and links to so many URLs, 1 or more."""
    return DAMPING * (BASE + received) / links


def codes_of(received: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return what URLs have received in 8 bits: 0 for nothing, else known to within 9 %."""
    with np.errstate(divide="ignore"):
        octaves = np.log2(received.astype(np.float64))
    codes = np.clip(np.rint(octaves * _PER_OCTAVE) + _MIDDLE, 1, 0xFF)
    return np.where(received > 0, codes, 0).astype(np.int64)


def flags_with(flags: int, code: int) -> int:
    """Return the flags of a URL that is admitted with this code."""
    return flags & ~_RECEIVED_MASK | code << RECEIVED_SHIFT


def received_of(flags: int) -> float:
    """Return what a URL had received when it was admitted; 0 if nothing, or votes are not counted."""
    code = (flags & _RECEIVED_MASK) >> RECEIVED_SHIFT
    return float(2.0 ** ((code - _MIDDLE) / _PER_OCTAVE)) if code else 0.0


def no_votes(keys: KeyArray) -> VoteArray:
    """Return what the URLs of these keys have if nobody has voted for them."""
    votes = np.zeros(len(keys), dtype=VOTES)
    votes["given"] = NOT_GIVEN
    return votes
