"""Two bodies of one length and one SHA-1: the published collision of Stevens et al. (SHAttered, 2017).

Its two pairs of blocks follow 192 bytes that both files share. Whatever is appended to both, they stay a collision.
"""

from __future__ import annotations

import hashlib
import random
from typing import Final

_SHARED: Final = bytes.fromhex(
    "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f5479706520"
    "34203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038"
    "203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d312069732064656164212121212185"
    "2fec092339759c39b1a1c63c4c97e1fffe01"
)
_BLOCKS: Final = (
    bytes.fromhex(
        "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb7"
        "6038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514"
        "e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1"
    ),
    bytes.fromhex(
        "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3"
        "dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500"
        "eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1"
    ),
)
_TAIL: Final = random.Random(1).randbytes(3_000)

FIRST, SECOND = (_SHARED + block + _TAIL for block in _BLOCKS)
"""Large enough to be stored by reference."""

assert FIRST != SECOND
assert len(FIRST) == len(SECOND)
assert hashlib.sha1(FIRST, usedforsecurity=False).digest() == hashlib.sha1(SECOND, usedforsecurity=False).digest()
