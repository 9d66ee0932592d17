"""URLs that have ended and come again later, as nodes send them to partitions.

On the wire they are u8 format version | zlib(msgpack [[due_s, number, key, host, priority, flags, body], ...]).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.records.queued_url import QueuedUrl, unsound_urls

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION = 1
_COMPRESSION_LEVEL = 1
_TYPES = (int, int, int, str, int, int, bytes)
_DUE_S_MAX = 1 << 32

NO_MORE_S: Final = _DUE_S_MAX - 1
"""The time of a URL that comes no more, and is kept for the data about its page."""


class TimedFormatError(BigcrawlError):
    pass


class TimedUrl(NamedTuple):
    """A URL due again, in seconds since 1970. Of two copies with one `number` (of ends), only one counts."""

    due_s: int
    number: int
    url: QueuedUrl


def encode_timed(urls: Sequence[TimedUrl]) -> bytes:
    packed: bytes = msgpack.packb([(due_s, number, *url) for due_s, number, url in urls], use_bin_type=True)
    return bytes((_VERSION,)) + isal_zlib.compress(packed, _COMPRESSION_LEVEL)


def decode_timed(data: bytes) -> list[TimedUrl]:
    if not data or data[0] != _VERSION:
        found = data[0] if data else "nothing"
        raise TimedFormatError(f"timed URLs have format version {found}; this version reads {_VERSION}")
    try:
        rows = msgpack.unpackb(isal_zlib.decompress(data[1:]), raw=False, strict_map_key=False)
        is_sound = all(_is_sound(row) for row in rows)
        return [TimedUrl(row[0], row[1], QueuedUrl(*row[2:])) for row in rows] if is_sound else _raise_format_error()
    except TimedFormatError:
        raise
    except Exception as error:
        raise TimedFormatError(f"timed URLs cannot be decoded: {error!r}") from error


def _is_sound(row: Sequence[Any]) -> bool:
    if tuple(map(type, row)) != _TYPES:
        return False
    due_s: int = row[0]
    number: int = row[1]
    key: int = row[2]
    is_in_range = 0 <= due_s < _DUE_S_MAX and 0 < number < 1 << 32 and 0 <= key < 1 << 64
    return is_in_range and not unsound_urls([QueuedUrl(*row[2:])])


def _raise_format_error() -> list[TimedUrl]:
    raise TimedFormatError("a timed URL has too many or too few fields, or one of a wrong type or out of range")
