"""The text of pages, in the form in which they are compared: words in lower case, with one zero byte before each.

Several pages are read at once: most steps are calls of numpy, and each costs more than the bytes of one page. The text
is made of bytes, in whatever encoding they are: a copy has the encoding of its original. A byte of a character that is
not ASCII counts as a letter. A tag reaches from ``<``, unless a blank follows, to the next ``>``.

No step depends on how much markup a page has: tags are found by additions of long numbers that have a bit for each
byte. Where a one is added at the beginning of a tag to a number whose zeros are the ends of tags, its carry runs to the
end of the tag.

Rules for editing: each expression is possessive, and takes what it has begun, if need be to the end of the page, so
that the cost is linear in the bytes of the page (see `bigcrawl.markup`, which reads pages as exactly as links need it).
Source of the additions: Cameron et al., Bitwise Data Parallelism in Regular Expression Matching (2014).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    ByteArray = npt.NDArray[np.uint8]
    MaskArray = npt.NDArray[np.bool_]
    NumberArray = npt.NDArray[np.uint64]

TEXT_BYTES_MAX: Final = 1 << 16
"""Of a longer page, its first and its last half of this are read."""

GAP_BYTES: Final = 32
"""How many zeros stand before, between and after the texts of pages."""

_HALF: Final = TEXT_BYTES_MAX // 2
_GAP: Final = b">" + bytes(GAP_BYTES - 1)  # ends a tag that the page leaves open
# Their content changes from one fetch to the next: nonces, times, state for scripts.
_find_scripts = re.compile(rb"(?ai:<(script|style)\b[^<]*+(?:<(?!/\1\b)[^<]*+)*+)").finditer

_OPEN, _CLOSE, _S, _BLANK, _A, _ZERO = map(np.uint8, b"<>s a0")
_LETTERS, _DIGITS, _ASCII, _LOWER = map(np.uint8, (26, 10, 0x80, 0x20))
_FULL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


class Texts(NamedTuple):
    """The texts of several pages.

    Attributes:
        words: uint8, shape (n,): `GAP_BYTES` zeros, then each page's text and again as many. A text is words of letters
            and digits with at least one zero before each.
        ends: where the text of each page ends in it.
    """

    words: ByteArray
    ends: list[int]


def read_part(body: bytes) -> bytes:
    """Return the part of a page that is read: all of it, or its begin and its end."""
    return body if len(body) <= TEXT_BYTES_MAX else b"%b %b" % (body[:_HALF], body[-_HALF:])


def texts_of(bodies: Sequence[bytes]) -> Texts:
    """Return the words of pages; what is longer than `TEXT_BYTES_MAX` is not read.

    Args:
        bodies: of HTML or plain text, without content encoding.

    Cost: linear in what is read; 30 us for a page of 21 KB, of several, and 50 us for a single one.
    """
    bodies = [read_part(body) for body in bodies]
    page = _page_of(bodies)
    is_ascii = page < _ASCII
    folded = page | is_ascii.view(np.uint8) * _LOWER
    is_letter = folded - _A < _LETTERS
    is_letter |= folded - _ZERO < _DIGITS
    is_letter |= ~is_ascii
    opens = page == _OPEN
    if (opens[:-1] & (folded[1:] == _S)).any():
        _drop_scripts(bodies, is_letter)
    opens[:-1] &= page[1:] > _BLANK
    is_letter &= _outside_of_tags(opens, page)
    folded *= is_letter.view(np.uint8)
    kept = is_letter.copy()
    kept[:-1] |= is_letter[1:]
    ends = _keep_gaps(kept, bodies)
    return Texts(folded[kept], ends)


def _page_of(bodies: Sequence[bytes]) -> ByteArray:
    return np.frombuffer(_GAP.join((b"", *bodies, b"")), dtype=np.uint8)


def _drop_scripts(bodies: Sequence[bytes], is_letter: MaskArray) -> None:
    """Take scripts and styles for no letters."""
    start = len(_GAP)
    for body in bodies:
        for script in _find_scripts(body):
            is_letter[start + script.start() : start + script.end()] = False
        start += len(body) + len(_GAP)


def _outside_of_tags(opens: MaskArray, page: ByteArray) -> MaskArray:
    """Return which bytes of a page are in no tag; `opens` says where tags begin."""
    begins, inner = _bits_of(opens), _bits_of(page != _CLOSE)
    tags = _sum(begins, inner)
    tags ^= inner
    tags |= begins
    outside: MaskArray = np.unpackbits(tags.view(np.uint8), count=len(page), bitorder="little") == 0
    return outside


def _sum(some: NumberArray, others: NumberArray) -> NumberArray:
    """Add two long numbers in parts of 64 bits, the lowest part first."""
    sums = some + others
    carry, full = (
        int.from_bytes(np.packbits(mask, bitorder="little"), "little") for mask in (sums < some, sums == _FULL)
    )
    into = ((carry << 1) + full) ^ full  # what is carried into a full part goes on to the next one
    carried = np.frombuffer(into.to_bytes(len(sums) // 8 + 1, "little"), dtype=np.uint8)
    sums += np.unpackbits(carried, count=len(sums), bitorder="little")
    return sums


def _bits_of(mask: MaskArray) -> NumberArray:
    bits = np.zeros(-(-len(mask) // 64), dtype="<u8")
    packed = np.packbits(mask, bitorder="little")
    bits.view(np.uint8)[: len(packed)] = packed
    return bits


def _keep_gaps(kept: MaskArray, bodies: Sequence[bytes]) -> list[int]:
    """Mark the gaps as kept, and return where the pages end in what is kept."""
    ends = []
    kept[: len(_GAP)] = True
    counted = end = 0
    start = len(_GAP)
    for body in bodies:
        stop = start + len(body)
        end += int(np.count_nonzero(kept[counted:stop]))
        ends.append(end)
        counted, start = stop, stop + len(_GAP)
        kept[stop:start] = True
    return ends
