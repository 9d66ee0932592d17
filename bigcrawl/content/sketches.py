"""A sketch of a page: 64 bytes that tell how similar it is to another, and four keys that similar pages share.

The hashes of the page's shingles fall into `PLACES` ranges, and the least of each range stands for it. For two pages,
the two least hashes of a range are equal with a probability that is the similarity of the pages (Jaccard). A sketch has
two bits of each, so that other pairs are equal once in four. Of a range without hashes, the next hash above it stands
for it.

The two bits are the lowest of the hash, which say nothing of its place among others.

A band is a key made of four of these least hashes. Pages of similarity s share a certain band with probability s^4, and
one of the four with 1 - (1 - s^4)^4: 0.99 at s = 0.9, and 0.03 at s = 0.3.

Source: Broder (1997), min-wise hashes; Li, Owen, Zhang, One Permutation Hashing (2012); Shrivastava and Li, Densifying
One Permutation Hashing (2014); Li and König, b-Bit Minwise Hashing (2010). Simhash was not taken: see
docs/decisions/0131.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.content.shingles import mixed, shingles_of
from bigcrawl.content.text import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.content.shingles import HashArray, KeyArray, Shingles

    Packed = npt.NDArray[np.uint64]

PLACES: Final = 256
BANDS: Final = 4
BAND_SIZE: Final = 4
SKETCH_WORDS: Final = 8
"""How many 64-bit numbers a packed sketch takes."""

WORDS_MIN: Final = 192
"""A page with fewer has no sketch and no near copies. Of so few, a changed word changes much."""

ALIKE_MIN: Final = 231
"""Places of two sketches that must be equal for a near copy: what a similarity of 0.87 gives on average."""

_BITS: Final = 2
_IN_A_BYTE: Final = 8 // _BITS
_MASK: Final = np.uint8((1 << _BITS) - 1)
# A byte has one place of each quarter of the sketch.
_PART_FACTORS: Final = np.array([1 << _BITS * nth for nth in range(_IN_A_BYTE)], dtype=np.uint8)[:, np.newaxis]
_LOW_BITS: Final = np.uint64(0x5555555555555555)
_RANGE_SHIFT: Final = np.uint32(32 - 8)
_NONE: Final = np.uint32(0xFFFFFFFF)
_LAST_PLACE: Final = PLACES - 1
# Places of a band lie far apart, because a range without hashes has the least hash of a neighbour.
_BAND_PLACES: Final = np.arange(0, PLACES, PLACES // (BANDS * BAND_SIZE)).reshape(BAND_SIZE, BANDS).T
_COUNTED: Final = np.arange(1, 1 + BANDS * BAND_SIZE, dtype=np.uint64)
_BAND_MULTIPLIERS: Final = mixed(_COUNTED).reshape(BANDS, BAND_SIZE) | np.uint64(1)  # odd

assert PLACES == 1 << 8, "the first bits of a hash name its range"
assert PLACES * _BITS == SKETCH_WORDS * 64, "a packed sketch is full"


class Sketches(NamedTuple):
    """The sketches of several pages.

    Attributes:
        made: bool, shape (n,): whether a page has one; it has none if it has fewer than `WORDS_MIN` words.
        packed: uint64, shape (n, SKETCH_WORDS): two bits of each place; means nothing if there is none, like bands.
        bands: uint64, shape (n, BANDS).
    """

    made: npt.NDArray[np.bool_]
    packed: Packed
    bands: KeyArray


def sketches_of(bodies: Sequence[bytes]) -> Sketches:
    """Return the sketches of pages.

    Args:
        bodies: at least one, of HTML or plain text, without content encoding.

    Cost: linear in what `texts_of` reads; 60 us for a page of 21 KB with 60 links, of several, 90 us for a single one.
    """
    return sketches_of_shingles(shingles_of(texts_of(bodies)))


def sketches_of_shingles(shingles: Shingles) -> Sketches:
    """Return the sketches of pages by their shingles. Repeated ones count once."""
    counts = np.diff(shingles.ends, prepend=0)
    least = _least_of(shingles.hashes, counts)
    parts = (least.astype(np.uint8) & _MASK).reshape(len(counts), _IN_A_BYTE, -1)
    packed = np.bitwise_or.reduce(parts * _PART_FACTORS, axis=1)
    bands = mixed((least[:, _BAND_PLACES] * _BAND_MULTIPLIERS).sum(axis=-1))
    return Sketches(shingles.words >= WORDS_MIN, packed.view("<u8"), bands)


def _least_of(hashes: HashArray, counts: npt.NDArray[np.intp]) -> HashArray:
    """Return the least hash of each page in each range, or of the next one with any; shape (pages, PLACES)."""
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
    """Return how many places of sketches are equal.

    Args:
        some: packed sketches, shape (n, SKETCH_WORDS).
        others: likewise; the first of these is compared with the first of those.

    Returns:
        shape (n,).
    """
    differing = some ^ others
    differing |= differing >> np.uint64(1)
    counts: npt.NDArray[np.int64] = PLACES - np.bitwise_count(differing & _LOW_BITS).sum(axis=-1, dtype=np.int64)
    return counts
