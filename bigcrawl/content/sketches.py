"""A sketch of a page: 64 bytes that tell its similarity to another, and keys that similar pages share.

Hashes of shingles fall into `PLACES` ranges, and the least hash of each represents it. A sketch is the parity of these
hashes at `BITS` positions, and their number. Where two pages have the same hashes, their parities cancel out, so the
bits that differ tell how many hashes differ, and from this follows the Jaccard similarity.

The hashes that are least in each sixteenth of all are the same in two pages with a probability that is their
similarity s. A band is a key made of four of them. Pages share one of the four bands with probability

    1 - (1 - s^4)^4

A gist is a key made of two, so it is shared with probability s^2.

Source: Broder (1997), min-wise hashes; Li, Owen, Zhang, One Permutation Hashing (2012); Mitzenmacher, Pagh, Pham,
Efficient Estimation for High Similarities Using Odd Sketches (2014). Decision 0131 rejects simhash.

Shingles: the hashed phrases of a text. The similarity of two pages is that of their sets of shingles (Jaccard).

A shingle is `SHINGLE_BYTES` from the beginning of a word on, some four words. Characters with UTF-8 lead bytes from
0xE0 on, such as Chinese ones, begin a word each.

Source: Broder et al., Syntactic Clustering of the Web (1997). Differs: a shingle is a number of bytes, not of words.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.content.exact_copies import HALF_BITS, MIXER, mix_bits
from bigcrawl.content.sketched import SKETCH_WORDS
from bigcrawl.content.text import GAP_BYTES, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    Packed = npt.NDArray[np.uint64]
    Numbers = npt.NDArray[np.float64]
    import numpy.typing as npt

    from bigcrawl.content.text import JoinedTexts

    HashArray = npt.NDArray[np.uint32]

PLACES: Final = 1536
BANDS: Final = 4
BAND_SIZE: Final = 4

WORDS_MIN: Final = 192
"""A page with fewer words gets no sketch, because one word would change much."""

BITS: Final = SKETCH_WORDS * 64 - 16
"""The bits before the 16 of the number."""

_STRIDE: Final = SKETCH_WORDS * 64
_NUMBER: Final = BITS // 16
_PARITIES: Final = np.array([*[0xFFFFFFFFFFFFFFFF] * (SKETCH_WORDS - 1), 0x0000FFFFFFFFFFFF], dtype=np.uint64)
_PLACES: Final = np.uint32(PLACES)
_BITS: Final = np.uint32(BITS)
_HIGH: Final = np.uint32(16)
_NONE: Final = np.uint32(0xFFFFFFFF)
_ROUNDING: Final = 1e-6
_COUNTED: Final = np.arange(1, 1 + BANDS * BAND_SIZE, dtype=np.uint64)
_BAND_MULTIPLIERS: Final = mix_bits(_COUNTED + (np.uint64(1) << HALF_BITS)).reshape(BANDS, BAND_SIZE) | np.uint64(1)
_GIST_MULTIPLIERS: Final = _BAND_MULTIPLIERS[:2, 0]

assert PLACES % (BANDS * BAND_SIZE) == 0, "a sixteenth of all hashes is a number of whole ranges"


class Sketches(NamedTuple):
    """The sketches of several pages; only rows with `made` count."""

    made: npt.NDArray[np.bool_]
    packed: Packed
    bands: KeyArray
    gists: KeyArray


def sketches_of(bodies: Sequence[bytes]) -> Sketches:
    """Return the sketches of bodies of HTML or plain text, at least one, without content encoding."""
    return sketches_of_shingles(shingles_of(texts_of(bodies)))


def sketches_of_shingles(shingles: Shingles) -> Sketches:
    counts = np.diff(shingles.ends, prepend=0)
    least = _least_of(shingles.hashes, counts)
    of_parts = least.reshape(len(counts), BANDS, BAND_SIZE, -1).min(axis=-1)
    bands = mix_bits((of_parts * _BAND_MULTIPLIERS).sum(axis=-1))
    gists = mix_bits((of_parts[:, :2, 0] * _GIST_MULTIPLIERS).sum(axis=-1))
    return Sketches(counts >= WORDS_MIN, _parities_of(least), bands, gists)


def _least_of(hashes: HashArray, counts: npt.NDArray[np.intp]) -> HashArray:
    """Return the least hash in each range of each page, shape (pages, PLACES)."""
    least = np.full(len(counts) * PLACES, _NONE, dtype=np.uint32)
    places = np.arange(0, len(least), PLACES).repeat(counts)
    places += (hashes >> _HIGH) * _PLACES >> _HIGH
    np.minimum.at(least, places, hashes)
    return least.reshape(-1, PLACES)


def _parities_of(least: HashArray) -> Packed:
    flat = least.ravel()
    hashes = flat[flat != _NONE]
    numbers = np.count_nonzero(least != _NONE, axis=1)
    positions = np.arange(0, len(least) * _STRIDE, _STRIDE).repeat(numbers)
    positions += hashes % _BITS
    parities = np.bincount(positions, minlength=len(least) * _STRIDE).astype(np.uint8) & np.uint8(1)
    packed = np.packbits(parities, bitorder="little").reshape(len(least), -1)
    packed.view("<u2")[:, _NUMBER] = numbers
    return packed.view("<u8")


def are_alike(some: Packed, others: Packed, similarity: float) -> npt.NDArray[np.bool_]:
    """Return whether sketches show at least this Jaccard similarity.

    Of the ranges that are not empty in both pages, this share has the same hash in both on average.
    """
    bits = np.bitwise_count((some ^ others) & _PARITIES).sum(axis=-1, dtype=np.int64)
    numbers = _numbers_of(some), _numbers_of(others)
    same = (numbers[0] + numbers[1] - _HASHES_BY_BITS[bits]) / 2
    hashes = (_HASHES_BY_NUMBER[numbers[0]] + _HASHES_BY_NUMBER[numbers[1]]) / (1 + similarity)
    alike: npt.NDArray[np.bool_] = same + _ROUNDING >= similarity * PLACES * -np.expm1(-hashes / PLACES)
    return alike


def _numbers_of(packed: Packed) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = np.minimum(packed[..., -1] >> np.uint64(48), PLACES).astype(np.int64)
    return numbers


def _expected_hashes(share: float, ranges: int) -> float:
    """Return the average number of hashes that leave this share of the ranges empty."""
    return -ranges * math.log(share)


_HASHES_BY_NUMBER: Final[Numbers] = np.array(
    [_expected_hashes(max(1 - number / PLACES, 0.5 / PLACES), PLACES) for number in range(PLACES + 1)]
)
# Half of the bits differ between pages with nothing in common.
_HASHES_BY_BITS: Final[Numbers] = np.array(
    [_expected_hashes(max(1 - 2 * bits / BITS, 0.5 / BITS), BITS) / 2 for bits in range(BITS + 1)]
)


SHINGLE_BYTES: Final = 24

_LEAD: Final = np.uint8(0xE0)
_WINDOW: Final = np.dtype(f"V{SHINGLE_BYTES}")
# Never change them: stored sketches depend on them.
_MULTIPLIERS: Final = np.array((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9), dtype=np.uint64)

assert GAP_BYTES > SHINGLE_BYTES, "the last shingle of a text has nothing of the next one"


class Shingles(NamedTuple):
    """The shingles of several pages, up to each page's end in `ends`; a page has one for each word."""

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
