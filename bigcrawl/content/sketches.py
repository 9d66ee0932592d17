"""A sketch of a page: 64 bytes that tell its similarity to another, and four keys that similar pages share.

Hashes of shingles fall into `PLACES` ranges; the least of each, or the next above an empty range, represents it. In
each range, two pages have the same one with a probability that is their Jaccard similarity. A sketch has the lowest two
bits of each, so unequal ones match once in four.

A band is a key made of four such hashes. Pages of similarity s share one of the four bands with probability

    1 - (1 - s^4)^4

Source: Broder (1997), min-wise hashes; Li, Owen, Zhang, One Permutation Hashing (2012); Shrivastava and Li, Densifying
One Permutation Hashing (2014); Li and König, b-Bit Minwise Hashing (2010). Decision 0131 rejects simhash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.content.exact_copies import mix_bits
from bigcrawl.content.shingles import shingles_of
from bigcrawl.content.sketched import SKETCH_WORDS
from bigcrawl.content.text import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.content.shingles import HashArray, Shingles
    from bigcrawl.drum.format import KeyArray

    Packed = npt.NDArray[np.uint64]

PLACES: Final = 256
BANDS: Final = 4
BAND_SIZE: Final = 4

WORDS_MIN: Final = 192
"""A page with fewer words gets no sketch, because one word would change much."""

ALIKE_MIN: Final = 231
"""How many places must be equal: the average at a similarity of 0.87."""

_BITS: Final = 2
_IN_A_BYTE: Final = 8 // _BITS
_MASK: Final = np.uint8((1 << _BITS) - 1)
_PART_FACTORS: Final = np.array([1 << _BITS * nth for nth in range(_IN_A_BYTE)], dtype=np.uint8)[:, np.newaxis]
_LOW_BITS: Final = np.uint64(0x5555555555555555)
_RANGE_SHIFT: Final = np.uint32(32 - 8)
_NONE: Final = np.uint32(0xFFFFFFFF)
_LAST_PLACE: Final = PLACES - 1
# Far apart, because an empty range takes its neighbour's hash.
_BAND_PLACES: Final = np.arange(0, PLACES, PLACES // (BANDS * BAND_SIZE)).reshape(BAND_SIZE, BANDS).T
_COUNTED: Final = np.arange(1, 1 + BANDS * BAND_SIZE, dtype=np.uint64)
_BAND_MULTIPLIERS: Final = mix_bits(_COUNTED).reshape(BANDS, BAND_SIZE) | np.uint64(1)

assert PLACES == 1 << 8, "the first bits of a hash name its range"
assert PLACES * _BITS == SKETCH_WORDS * 64, "a packed sketch is full"


class Sketches(NamedTuple):
    """The sketches of several pages; only rows with `made` count."""

    made: npt.NDArray[np.bool_]
    packed: Packed
    bands: KeyArray


def sketches_of(bodies: Sequence[bytes]) -> Sketches:
    """Return the sketches of bodies of HTML or plain text, at least one, without content encoding."""
    return sketches_of_shingles(shingles_of(texts_of(bodies)))


def sketches_of_shingles(shingles: Shingles) -> Sketches:
    counts = np.diff(shingles.ends, prepend=0)
    least = _least_of(shingles.hashes, counts)
    parts = (least.astype(np.uint8) & _MASK).reshape(len(counts), _IN_A_BYTE, -1)
    packed = np.bitwise_or.reduce(parts * _PART_FACTORS, axis=1)
    bands = mix_bits((least[:, _BAND_PLACES] * _BAND_MULTIPLIERS).sum(axis=-1))
    return Sketches(shingles.words >= WORDS_MIN, packed.view("<u8"), bands)


def _least_of(hashes: HashArray, counts: npt.NDArray[np.intp]) -> HashArray:
    """Return the representative of each page and range, shape (pages, PLACES)."""
    least = np.full(len(counts) * PLACES, _NONE, dtype=np.uint32)
    places = np.arange(0, len(least), PLACES).repeat(counts)
    places += hashes >> _RANGE_SHIFT
    np.minimum.at(least, places, hashes)
    empty, full = np.flatnonzero(least == _NONE), np.flatnonzero(least != _NONE)
    if len(empty) and len(full):
        here = empty & ~_LAST_PLACE
        nearest = full.take(full.searchsorted(empty), mode="clip")
        first = full.take(full.searchsorted(here), mode="clip")
        least[empty] = least[np.where((nearest > empty) & (nearest & ~_LAST_PLACE == here), nearest, first)]
    return least.reshape(-1, PLACES)


def places_alike(some: Packed, others: Packed) -> npt.NDArray[np.int64]:
    differing = some ^ others
    differing |= differing >> np.uint64(1)
    counts: npt.NDArray[np.int64] = PLACES - np.bitwise_count(differing & _LOW_BITS).sum(axis=-1, dtype=np.int64)
    return counts
