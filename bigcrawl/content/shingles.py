"""Shingles: the hashed phrases of a text. The similarity of two pages is that of their sets of shingles (Jaccard).

A shingle is `SHINGLE_BYTES` from the beginning of a word on, some four words. Characters with UTF-8 lead bytes from
0xE0 on, such as Chinese ones, begin a word each.

Source: Broder et al., Syntactic Clustering of the Web (1997). Differs: a shingle is a number of bytes, not of words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.content.exact_copies import HALF_BITS, MIXER
from bigcrawl.content.text import GAP_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.content.text import JoinedTexts

    HashArray = npt.NDArray[np.uint32]

SHINGLE_BYTES: Final = 24

_LEAD: Final = np.uint8(0xE0)
_WINDOW: Final = np.dtype(f"V{SHINGLE_BYTES}")
# Never change them: stored sketches depend on them.
_MULTIPLIERS: Final = np.array((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9), dtype=np.uint64)

assert GAP_BYTES > SHINGLE_BYTES, "the last shingle of a text has nothing of the next one"


class Shingles(NamedTuple):
    """The shingles of several pages, up to `ends`; a page has one for each word."""

    hashes: HashArray
    ends: npt.NDArray[np.intp]


def shingles_of(texts: JoinedTexts) -> Shingles:
    words = texts.words
    size = len(words) - GAP_BYTES
    before, here = words[:size], words[1 : 1 + size]
    begins = (before == 0) & (here != 0)
    if words.max() >= _LEAD:
        begins |= here >= _LEAD
    starts = np.flatnonzero(begins)
    windows = np.ndarray((size,), _WINDOW, words, 1, (1,))[starts]
    sums = windows.view("<u8").reshape(-1, len(_MULTIPLIERS)) @ _MULTIPLIERS
    sums ^= sums >> HALF_BITS
    sums *= MIXER
    return Shingles((sums >> HALF_BITS).astype(np.uint32), starts.searchsorted(texts.ends))


def similarity(some: HashArray, others: HashArray) -> float:
    common = len(np.intersect1d(some, others))
    both = len(np.union1d(some, others))
    return common / both if both else 0.0
