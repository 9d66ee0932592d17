"""The stream of URLs that is offered: a set share of them new, the others again, each with its key and its text.

A new URL gets the next number; one that comes again has a number drawn evenly from those given so far, the
hardest case for anything that hopes for popular URLs. Numbers are scattered one to one over a web two to four times
as large, whose sites have directories of 400 pages, so that sorted neighbours mostly differ in their last digits.
The names of sites and directories are random letters, so many that shuffled URLs compress about as real ones do: these
to 0.23 of their size at 10^6 and 0.35 at 10^7; 89,304 found in the files installed on a machine, 46 bytes on average,
to 0.22, and the 2,014 of them longer than 70 bytes to 0.38.

The key is the number's own scattering over 64 bits: a hash without its collisions, so that what is new is known
exactly, at the bytes of any other hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    Texts = npt.NDArray[np.uint8]
    Mask = npt.NDArray[np.bool_]

# Every URL has the paper's mean length: the formulas know no more than the mean.
TEXT_BYTES: Final = 110
UNIQUE_SHARE: Final = 1 / 9

# The web is at least this many times as large as what the stream finds of it.
_WEB_TO_FOUND: Final = 2
_SITE_PAGES: Final = 8_000
_DIRECTORY_PAGES: Final = 400
_SITE, _DIRECTORY, _PAGE = b"s" * 16, b"d" * 40, b"0" * 4
_TEMPLATE: Final = b"http://www.%b.example/%b/catalogue/of/things/article-%b/" % (_SITE, _DIRECTORY, _PAGE)
_LETTERS: Final = np.frombuffer(b"abcdefghijklmnop", dtype=np.uint8)

_DIGEST_FACTORS: Final = np.random.default_rng(0).integers(2**64, size=TEXT_BYTES, dtype=np.uint64)

assert len(_TEMPLATE) == TEXT_BYTES


class Batch(NamedTuple):
    """URLs in the order they are offered.

    Attributes:
        keys: their 64-bit keys.
        texts: uint8, shape (n, `TEXT_BYTES`), ASCII.
        is_new: the truth: whether the stream offers it for the first time.
    """

    keys: KeyArray
    texts: Texts
    is_new: Mask

    def from_place(self, place: int) -> Batch:
        """Return those from that place on."""
        return Batch(self.keys[place:], self.texts[place:], self.is_new[place:])


def offered(count: int, batch: int, seed: int = 1, *, of: int | None = None) -> Iterator[Batch]:
    """Yield the first `count` URLs, `batch` at a time, of a stream of `of`, by default no longer; 2 us each.

    The same arguments give the same URLs. A longer stream has a larger web, whose URLs compress less.
    """
    dice = np.random.default_rng(seed)
    web_bits = max(int((of or count) * UNIQUE_SHARE * _WEB_TO_FOUND), 2).bit_length()
    found = 0
    for start in range(0, count, batch):
        size = min(batch, count - start)
        is_new = dice.random(size) < UNIQUE_SHARE
        if not start:
            is_new[0] = True
        # How many are known before each arrival: the number of a new one.
        known = found + np.cumsum(is_new) - is_new
        drawn = (dice.random(size) * known).astype(np.int64)
        numbers = np.where(is_new, known, drawn).astype(np.uint64)
        found += int(is_new.sum())
        yield Batch(keys_of(numbers), texts_of(numbers, web_bits), is_new)


def keys_of(numbers: KeyArray) -> KeyArray:
    """Scatter numbers over 64 bits, one to one."""
    return _scattered(numbers, 64)


def texts_of(numbers: KeyArray, web_bits: int) -> Texts:
    """Return the URLs of numbers below 2^web_bits, ASCII, shape (n, `TEXT_BYTES`); different for each."""
    places = _scattered(numbers, web_bits)
    directories = places // np.uint64(_DIRECTORY_PAGES)
    sites = places // np.uint64(_SITE_PAGES)
    texts = np.empty((len(numbers), TEXT_BYTES), dtype=np.uint8)
    texts[:] = np.frombuffer(_TEMPLATE, dtype=np.uint8)
    _write_letters(texts, _TEMPLATE.index(_SITE), len(_SITE), sites)
    _write_letters(texts, _TEMPLATE.index(_DIRECTORY), len(_DIRECTORY), directories)
    _write_digits(texts, _TEMPLATE.index(_PAGE), len(_PAGE), places % np.uint64(_SITE_PAGES))
    return texts


def digest_of(texts: Texts) -> int:
    """Return a number of 64 bits that says which texts these are, in whatever order: digests of parts add up."""
    sums = texts.astype(np.uint64) @ _DIGEST_FACTORS
    return int(_scattered(sums, 64).sum(dtype=np.uint64))


def _write_letters(texts: Texts, at: int, letters: int, numbers: KeyArray) -> None:
    """Write a name for each number, the first 16 letters of which no other number has."""
    for column in range(at, at + letters, 16):
        numbers = _scattered(numbers + np.uint64(at), 64)
        nibbles = np.empty((len(numbers), 16), dtype=np.uint8)
        data = numbers.view(np.uint8).reshape(-1, 8)
        nibbles[:, ::2], nibbles[:, 1::2] = data >> 4, data & 15
        end = min(column + 16, at + letters)
        texts[:, column:end] = _LETTERS[nibbles[:, : end - column]]


def _write_digits(texts: Texts, at: int, digits: int, numbers: KeyArray) -> None:
    for column in range(at + digits - 1, at - 1, -1):
        texts[:, column] = ord("0") + numbers % np.uint64(10)
        numbers = numbers // np.uint64(10)


def _scattered(numbers: KeyArray, bits: int) -> KeyArray:
    """A bijection of the numbers below 2^bits: odd factors and right shifts, each of which can be undone."""
    mask = np.uint64((1 << bits) - 1)
    half = np.uint64((bits + 1) // 2)
    # Factors of splitmix64.
    mixed = (numbers * np.uint64(0xBF58476D1CE4E5B9)) & mask
    mixed = mixed ^ (mixed >> half)
    mixed = (mixed * np.uint64(0x94D049BB133111EB)) & mask
    return mixed ^ (mixed >> half)
