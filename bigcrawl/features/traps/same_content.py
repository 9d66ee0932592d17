"""Detects PLDs that serve the same content under many URLs, in windows of `WINDOW` pages fetched by this node."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from isal import isal_zlib

from bigcrawl.features.traps.verdicts import pack_same_content

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.url.key import PldKey

logger = logging.getLogger(__name__)

WINDOW: Final = 64

PLDS_KEPT: Final = 20_000
"""PLDs whose windows a node remembers, about 5 MB; the least recently fetched is dropped first."""

_BITS: Final = 256


class _PageWindow:
    """A window of pages; the checksum of each page's content sets one of `bits`."""

    __slots__ = ("bits", "pages", "sent")

    def __init__(self) -> None:
        self.pages = 0
        self.bits = 0
        self.sent = -1


class SameContent:
    def __init__(self, share: float, pld_of: Callable[[str], str], pld_key: Callable[[str], PldKey]) -> None:
        self._least = math.ceil(share * WINDOW)
        self._pld_of = pld_of
        self._pld_key = pld_key
        self._seen: OrderedDict[str, _PageWindow] = OrderedDict()

    def record_page(self, host: str, body: bytes) -> bytes:
        pld = self._pld_of(host)
        seen = self._seen.get(pld)
        if seen is None:
            seen = self._seen[pld] = _PageWindow()
            if len(self._seen) > PLDS_KEPT:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end(pld)
        seen.pages += 1
        seen.bits |= 1 << isal_zlib.crc32(body) % _BITS
        return self._end_window(pld, seen) if seen.pages >= WINDOW else b""

    def _end_window(self, pld: str, seen: _PageWindow) -> bytes:
        same = max(0, WINDOW - _estimate_distinct(seen.bits))
        verdict = same if same >= self._least else 0
        seen.pages = seen.bits = 0
        if bool(verdict) == seen.sent:
            return b""
        if verdict:
            logger.info(
                "%(pld)s is considered a trap: about %(same)d of its last %(window)d pages had the same content as "
                "other pages",
                {"pld": pld, "same": same, "window": WINDOW},
            )
        seen.sent = bool(verdict)
        return pack_same_content(self._pld_key(pld), verdict)


def _estimate_distinct(bits: int) -> int:
    """Estimate, by linear counting, how many different contents have set these bits."""
    free = _BITS - bits.bit_count()
    return round(-_BITS * math.log(free / _BITS)) if free else WINDOW
