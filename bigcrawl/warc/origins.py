"""Remembers where recent payloads are stored, so that a copy can refer to its original (content-seen).

A payload is identified by SHA-1, length, and Python's hash, which is SipHash with a secret of the process: anybody can
publish two pages with one SHA-1. A copy refers only to earlier records of its own file, which damage would cut off only
together with the copy, or to records of a sealed file, which are on the medium.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

from bigcrawl.warc.records import Origin, payload_sha1

if TYPE_CHECKING:
    from bigcrawl.warc.records import Exchange

ORIGINS_MAX: Final = 1 << 16
"""Payloads remembered, in 35 to 70 MB."""

URL_CHARS_MAX: Final = 512
"""Pages with longer URLs are not remembered."""

COPY_BYTES_MIN: Final = 512
"""A reference takes as much as a shorter payload."""


class OriginFile(Protocol):
    @property
    def is_sealed(self) -> bool: ...


class RecentOrigins:
    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._origins: OrderedDict[tuple[bytes, int, int], tuple[Origin, OriginFile]] = OrderedDict()

    def look_up(self, exchange: Exchange, file: OriginFile) -> tuple[bytes, Origin | None]:
        """Return the SHA-1 of a payload, and the earlier record that has it, if `file` may refer to that."""
        payload = payload_sha1(exchange)
        if not self._origins or exchange.truncated is not None:
            return payload, None
        key = _content_key(exchange, payload)
        known = self._origins.get(key)
        if known is None:
            return payload, None
        self._origins.move_to_end(key)
        origin, home = known
        return payload, origin if home is file or home.is_sealed else None

    def remember(self, exchange: Exchange, payload: bytes, file: OriginFile) -> Origin | None:
        """Remember a payload, and return its origin; None if it cannot become one."""
        size = len(exchange.response_body)
        if (
            not self._count_max
            or exchange.record_id is None
            or exchange.truncated is not None
            or size < COPY_BYTES_MIN
            or len(exchange.url) > URL_CHARS_MAX
        ):
            return None
        origin = Origin(exchange.url, exchange.date_ms, exchange.record_id, exchange.status)
        self._origins[_content_key(exchange, payload)] = origin, file
        if len(self._origins) > self._count_max:
            self._origins.popitem(last=False)
        return origin

    def forget(self) -> None:
        self._origins.clear()


def _content_key(exchange: Exchange, payload: bytes) -> tuple[bytes, int, int]:
    return payload, len(exchange.response_body), hash(exchange.response_body)
