"""Remembers where recent payloads are stored, so that a copy can refer to its original (content-seen).

A payload is identified by its SHA-1, its length, and Python's hash of it. SHA-1 alone is not enough: anybody can
publish two pages that share it. Python's hash is SipHash with a secret of the process, so nobody can make two pages
that share that, unless `PYTHONHASHSEED` is public. It costs 2 us for 12 KB, and the bytes object keeps it.

A copy refers only to records that its own writer wrote before: to one in the same file, so that damage that cuts off
the original cuts off the copy behind it too, or to one in an earlier file that is sealed, and so on the medium. Between
the last record of a file and its sealing, its records are not referred to: after a power cut, the next file might have
kept more. The least recently used payload is forgotten first. A copy whose original is not known is stored whole.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

from bigcrawl.warc.records import Origin, payload_sha1

if TYPE_CHECKING:
    from bigcrawl.warc.records import Exchange

ORIGINS_MAX: Final = 1 << 16
"""Payloads remembered: with addresses of 75 bytes some 35 MB, and at most twice that."""

URL_CHARS_MAX: Final = 512
"""A page at a longer address is not referred to, so that hostile addresses take no memory."""

COPY_BYTES_MIN: Final = 512
"""A shorter payload is stored again: a reference takes as much."""


class File(Protocol):
    """A file that records are written to."""

    @property
    def is_sealed(self) -> bool:
        """Whether it is complete and on the medium."""


class Origins:
    """The payloads that were written lately.

    Args:
        count_max: how many are remembered; 0: none, so that each is stored whole.
    """

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._origins: OrderedDict[tuple[bytes, int, int], tuple[Origin, File]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Origins {len(self._origins)}>"

    def look_up(self, exchange: Exchange, file: File) -> tuple[bytes, Origin | None]:
        """Return the SHA-1 of an exchange's payload, and the record that has this payload; None if none is known.

        The exchange is about to be written to `file`. An incomplete body is never a copy.
        """
        payload = payload_sha1(exchange)
        if not self._origins or exchange.truncated is not None:
            return payload, None
        key = _key(exchange, payload)
        known = self._origins.get(key)
        if known is None:
            return payload, None
        self._origins.move_to_end(key)
        origin, home = known
        return payload, origin if home is file or home.is_sealed else None

    def remember(self, exchange: Exchange, payload: bytes, file: File) -> None:
        """Remember an exchange that was written whole to `file`, if it may be referred to."""
        size = len(exchange.response_body)
        if (
            not self._count_max
            or exchange.record_id is None
            or exchange.truncated is not None
            or size < COPY_BYTES_MIN
            or len(exchange.url) > URL_CHARS_MAX
        ):
            return
        origin = Origin(exchange.url, exchange.date_ms, exchange.record_id, exchange.status)
        self._origins[_key(exchange, payload)] = origin, file
        if len(self._origins) > self._count_max:
            self._origins.popitem(last=False)

    def forget(self) -> None:
        """Forget all records, because some of them may be lost."""
        self._origins.clear()


def _key(exchange: Exchange, payload: bytes) -> tuple[bytes, int, int]:
    return payload, len(exchange.response_body), hash(exchange.response_body)
