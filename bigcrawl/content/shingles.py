"""Shingles: the phrases of a text, hashed. Two pages are as similar as their sets of shingles are (Jaccard).

A shingle is the text from the beginning of a word on, `SHINGLE_BYTES` of it, which are some four words. Windows of a
fixed size are gathered by numpy, eight bytes at a time, without a step in Python for each word. Only words count whose
first two bytes have a sum that is a multiple of four: a quarter of them, the same in copies. Scripts without blanks
between words, such as Chinese, have lead bytes in UTF-8 from 0xE0 on, so each of their characters begins a word.
Source: Broder et al., Syntactic Clustering of the Web (1997). Differs: a shingle is so many bytes, not so many words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    HashArray = npt.NDArray[np.uint64]

SHINGLE_BYTES: Final = 24

_BLANK: Final = 0x20
_LEAD: Final = 0xE0
_THREE: Final = np.uint8(3)
_PADDING: Final = bytes([_BLANK]) * SHINGLE_BYTES
_NUMBER_BYTES: Final = 8
# One odd multiplier for each eight bytes of a window. They must never change, because stored sketches depend on them.
_MULTIPLIERS: Final = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)))
_MIXER: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF_BITS: Final = np.uint64(32)


def shingles_of(text: bytes) -> HashArray:
    """Return the hashes of the shingles of a text, in its order; equal ones repeat.

    Args:
        text: as `bigcrawl.content.text.text_of` returns it.

    Returns:
        uint64, shape (n,); n is about a quarter of the words.

    Cost: linear; 40 us for 18 KB of text.
    """
    padded = b" %b%b" % (text, _PADDING)
    every = np.frombuffer(padded, dtype=np.uint8)
    before, here, behind = (every[at : at + len(text)] for at in range(3))
    begins = (here != _BLANK) & (before == _BLANK)
    begins |= here >= _LEAD
    begins &= (here + behind) & _THREE == 0
    starts = np.flatnonzero(begins)
    sums = np.zeros(len(starts), dtype=np.uint64)
    for nth, multiplier in enumerate(_MULTIPLIERS):
        # The eight bytes at each position, as one number; position 0 is that of the text.
        numbers = np.ndarray((len(text),), "<u8", padded, 1 + nth * _NUMBER_BYTES, (1,))[starts]
        numbers *= multiplier
        sums += numbers
    return mixed(sums)


def similarity(some: HashArray, others: HashArray) -> float:
    """Return the Jaccard similarity of two sets of shingles; 0 if both are empty."""
    common = len(np.intersect1d(some, others))
    both = len(np.union1d(some, others))
    return common / both if both else 0.0


def mixed(hashes: HashArray) -> HashArray:
    """Return hashes of which each bit depends on many bits of what is given."""
    spread: HashArray = hashes ^ (hashes >> _HALF_BITS)
    spread *= _MIXER
    spread ^= spread >> _HALF_BITS
    spread *= _MIXER
    spread ^= spread >> _HALF_BITS
    return spread
