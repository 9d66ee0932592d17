"""Where payloads are stored that were written lately, so that a copy can refer to its original (content-seen).

A payload is known by all 160 bits of its SHA-1 and its length. What is remembered was written before, by the same
writer, into the same file or an earlier one: a copy becomes safe after its original. The least recently used payload is
forgotten first, and its next copy is stored whole.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from bigcrawl.warc.records import Origin, payload_sha1

if TYPE_CHECKING:
    from bigcrawl.warc.records import Exchange

ORIGINS_MAX: Final = 1 << 16
"""Payloads remembered: with addresses of 75 bytes some 35 MB, and at most twice that."""

URL_CHARS_MAX: Final = 512
"""A page at a longer address is not referred to, so that hostile addresses take no memory."""

COPY_BYTES_MIN: Final = 512
"""A shorter payload is stored again: a reference takes as much."""


class Origins:
    """The payloads that were written lately.

    Args:
        count_max: how many are remembered; 0: none, so that each is stored whole.
    """

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._origins: OrderedDict[tuple[bytes, int], Origin] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Origins {len(self._origins)}>"

    def look_up(self, exchange: Exchange) -> tuple[bytes, Origin | None]:
        """Return the SHA-1 of an exchange's payload, and the record that has this payload; None if none is known.

        A body that is incomplete is nobody's copy.
        """
        payload = payload_sha1(exchange)
        key = payload, len(exchange.response_body)
        origin = self._origins.get(key) if exchange.truncated is None else None
        if origin is not None:
            self._origins.move_to_end(key)
        return payload, origin

    def remember(self, exchange: Exchange, payload: bytes) -> None:
        """Remember an exchange that was written whole, if it may be referred to."""
        size = len(exchange.response_body)
        if (
            not self._count_max
            or exchange.record_id is None
            or exchange.truncated is not None
            or size < COPY_BYTES_MIN
            or len(exchange.url) > URL_CHARS_MAX
        ):
            return
        self._origins[payload, size] = Origin(exchange.url, exchange.date_ms, exchange.record_id, exchange.status)
        if len(self._origins) > self._count_max:
            self._origins.popitem(last=False)

    def forget(self) -> None:
        """Forget all records, because some of them may be lost."""
        self._origins.clear()
