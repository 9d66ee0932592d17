"""The rows by which partitions find the contents that PLDs share (docs/redis-keys.md).

3 sampled    a page of this PLD has this content   to the PLD's partition
4 counted    a PLD has it as its n-th sample       to the content's
5 shared     a greater PLD has the n-th sample     to the PLD's
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

SAMPLED: Final = 3
COUNTED: Final = 4
SHARED: Final = 5

KINDS: Final = {
    SAMPLED: np.dtype([("pld", "<u8"), ("content", "<u8")]),
    COUNTED: np.dtype([("content", "<u8"), ("pld", "<u8"), ("number", "<u4"), ("octave", "u1")]),
    SHARED: np.dtype([("pld", "<u8"), ("number", "<u4"), ("other", "<u8"), ("octave", "u1")]),
}

_PAIR: Final = struct.Struct("<QQ")


def pack_sampled(pld: int, content: int) -> bytes:
    return _PAIR.pack(pld, content)
