"""The text of pages for comparison: words in lower case, with one zero byte before each.

Pages are read together, because a numpy call costs more than the bytes of one page. Non-ASCII bytes are letters, in any
encoding. A tag is ``<``, unless a blank follows, to the next ``>``; adding long numbers with a bit per byte carries a
one through it (Cameron et al., Bitwise Data Parallelism in Regular Expression Matching, 2014). Expressions are
possessive, so the cost is linear.
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
"""How much of a page is read; of a longer one, half of this at each end."""

GAP_BYTES: Final = 32
"""How many zeros are before, between and after texts."""

_HALF: Final = TEXT_BYTES_MAX // 2
_GAP: Final = b">" + bytes(GAP_BYTES - 1)
# Their content changes with each fetch: nonces, times, state.
_find_scripts = re.compile(rb"(?ai:<(script|style)\b[^<]*+(?:<(?!/\1\b)[^<]*+)*+)").finditer

_OPEN, _CLOSE, _S, _BLANK, _A, _ZERO = map(np.uint8, b"<>s a0")
_LETTERS, _DIGITS, _ASCII, _LOWER = map(np.uint8, (26, 10, 0x80, 0x20))
_FULL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


class JoinedTexts(NamedTuple):
    words: ByteArray
    ends: list[int]


def read_part(body: bytes) -> bytes:
    return body if len(body) <= TEXT_BYTES_MAX else b"%b %b" % (body[:_HALF], body[-_HALF:])


def texts_of(bodies: Sequence[bytes]) -> JoinedTexts:
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
    return JoinedTexts(folded[kept], ends)


def _page_of(bodies: Sequence[bytes]) -> ByteArray:
    return np.frombuffer(_GAP.join((b"", *bodies, b"")), dtype=np.uint8)


def _drop_scripts(bodies: Sequence[bytes], is_letter: MaskArray) -> None:
    start = len(_GAP)
    for body in bodies:
        for script in _find_scripts(body):
            is_letter[start + script.start() : start + script.end()] = False
        start += len(body) + len(_GAP)


def _outside_of_tags(opens: MaskArray, page: ByteArray) -> MaskArray:
    begins, inner = _bits_of(opens), _bits_of(page != _CLOSE)
    tags = _sum_by_text(begins, inner)
    tags ^= inner
    tags |= begins
    outside: MaskArray = np.unpackbits(tags.view(np.uint8), count=len(page), bitorder="little") == 0
    return outside


def _sum_by_text(some: NumberArray, others: NumberArray) -> NumberArray:
    sums = some + others
    carry, full = (
        int.from_bytes(np.packbits(mask, bitorder="little"), "little") for mask in (sums < some, sums == _FULL)
    )
    into = ((carry << 1) + full) ^ full  # a full part passes a carry on
    carried = np.frombuffer(into.to_bytes(len(sums) // 8 + 1, "little"), dtype=np.uint8)
    sums += np.unpackbits(carried, count=len(sums), bitorder="little")
    return sums


def _bits_of(mask: MaskArray) -> NumberArray:
    bits = np.zeros(-(-len(mask) // 64), dtype="<u8")
    packed = np.packbits(mask, bitorder="little")
    bits.view(np.uint8)[: len(packed)] = packed
    return bits


def _keep_gaps(kept: MaskArray, bodies: Sequence[bytes]) -> list[int]:
    """Mark gaps between words as kept, and return where each page ends among the kept bytes."""
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
