"""URLs that have ended and are to be visited again, as nodes send them to partitions (steps 14 and 3).

An entry of the inbox has them beside the outcomes with which they ended. On the wire they are

    u8 format version | zlib( msgpack [ [due_s, number, key, host, priority, flags, body], ... ] )

An unknown version is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.records.queued_url import QueuedUrl, unsound_urls

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION = 1
_COMPRESSION_LEVEL = 1  # as for batches
_TYPES = (int, int, int, str, int, int, bytes)
_DUE_S_MAX = 1 << 32  # in the year 2106


class RevisitsFormatError(BigcrawlError):
    """The bytes are not revisits that this version can read."""


class Revisit(NamedTuple):
    """A URL to be visited again.

    Attributes:
        due_s: when, in seconds since 1970 by the clock of the crawls.
        number: how often it was visited, see `bigcrawl.revisiting.visit`. Of two with the same number, one counts.
        url: the URL as it is queued then. Its body has what is known of its page.
    """

    due_s: int
    number: int
    url: QueuedUrl


def encode_revisits(revisits: Sequence[Revisit]) -> bytes:
    """Return revisits as bytes, in order."""
    packed: bytes = msgpack.packb([(due_s, number, *url) for due_s, number, url in revisits], use_bin_type=True)
    return bytes((_VERSION,)) + isal_zlib.compress(packed, _COMPRESSION_LEVEL)


def decode_revisits(data: bytes) -> list[Revisit]:
    """Return the revisits in bytes, in order.

    Raises:
        RevisitsFormatError: unknown version, damaged bytes, or fields of the wrong type or range.
    """
    if not data or data[0] != _VERSION:
        found = data[0] if data else "nothing"
        raise RevisitsFormatError(f"revisits have format version {found}; this version reads {_VERSION}")
    try:
        rows = msgpack.unpackb(isal_zlib.decompress(data[1:]), raw=False, strict_map_key=False)
        is_sound = all(_is_sound(row) for row in rows)
        return [Revisit(row[0], row[1], QueuedUrl(*row[2:])) for row in rows] if is_sound else _refuse()
    except RevisitsFormatError:
        raise
    except Exception as error:
        raise RevisitsFormatError(f"revisits cannot be decoded: {error!r}") from error


def _is_sound(row: Sequence[Any]) -> bool:
    if tuple(map(type, row)) != _TYPES:
        return False
    due_s: int = row[0]
    number: int = row[1]
    key: int = row[2]
    is_in_range = 0 <= due_s < _DUE_S_MAX and 0 < number < 1 << 32 and 0 <= key < 1 << 64
    return is_in_range and not unsound_urls([QueuedUrl(*row[2:])])


def _refuse() -> list[Revisit]:
    raise RevisitsFormatError("a revisit has too many or too few fields, or one of a wrong type or out of range")
