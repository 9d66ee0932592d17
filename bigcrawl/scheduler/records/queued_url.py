"""A URL as it travels from a node's outbox through inbox, disk and admission, or back to come again later.

A batch on the wire or on disk is u8 format version | zlib(msgpack [[key, host, priority, flags, body], ...]). Timed
URLs, which have ended and come again, are likewise [[due_s, number, key, host, priority, flags, body], ...]. An
unknown version is refused. Pickle is never used.

Features find traits of URLs at discovery, and keep them in bits of the flags. Only one feature may have a module `url`
that returns a function from `traits_of`: there are 17 bits.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import adler32

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.feature_list import modules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bigcrawl.config import Config

    Traits = Callable[[str, int], int]

BATCH_VERSION = 1

# `QueuedUrl.flags`, one bit each.
UNCHECKED = 1  # queued each time it is offered, without the seen check (Scrapy's dont_filter)
# 2 belongs to a feature: the URL is counted in a total
TRAITS_SHIFT = 2  # the first bit of features' traits, see `traits_of`
LISTED_SHIFT = 19  # three bits: the site's declared change frequency, a code of `listings.changefreqs`
ASKED = 1 << 23  # its HEAD was answered, or failed: it is fetched next
ADMITTED_SHIFT = 24  # eight bits of a feature while the URL is in Redis, see `StepPart.admitted`
RANGES_SHIFT = 32  # the first bit of the 24-bit mark of the blacklist's address ranges
UNRUNNABLE = 1 << 56  # the node that took it could not run its request, see `queues.unrunnable`
FLAGS_END = 1 << 57
HOST_CHARS_MAX = 255
PRIORITY_END = 1 << 31

_LISTED_MASK = 0b111 << LISTED_SHIFT

# Level 1 first builds a code, in 4 to 8 us. Level 0 has a fixed code, and writes it in front of the data, in 110 bytes.
# Most batches of a broad crawl have one or two URLs, and are smaller uncompressed.
_STORED_BYTES, _SMALL_BYTES = 192, 1_024
_SMALL_LEVEL, _LEVEL = 0, 1
_STORED_HEAD, _STORED_END = Struct("<4sHH"), Struct(">I")
_STORED = bytes((BATCH_VERSION, 0x78, 1, 1))  # then zlib's header, and that of a last block that is not compressed

_TRAITS_MASK = (1 << LISTED_SHIFT - TRAITS_SHIFT) - 1

_TIMED_VERSION = 1
_TIMED_TYPES = (int, int, int, str, int, int, bytes)
_DUE_S_MAX = 1 << 32

NO_MORE_S: Final = _DUE_S_MAX - 1
"""The time of a URL that comes no more, and is kept for the data about its page."""

_pack = msgpack.Packer().pack  # for all threads: it holds the GIL to its end


class BatchFormatError(BigcrawlError):
    pass


class QueuedUrl(NamedTuple):
    """A URL waiting to be fetched.

    Attributes:
        key: of the canonical URL, with method and body unless the method is GET.
        host: lower-case A-label or IP literal.
        priority: 32-bit signed; higher first, 0 is ordinary.
        body: the request, opaque to the frontier.
    """

    key: int
    host: str
    priority: int
    flags: int
    body: bytes


def listed_in(flags: int) -> int:
    return (flags & _LISTED_MASK) >> LISTED_SHIFT


def encode_batch(urls: Sequence[QueuedUrl]) -> bytes:
    packed: bytes = _pack(urls)
    size = len(packed)
    if size <= _STORED_BYTES:
        return _STORED_HEAD.pack(_STORED, size, size ^ 0xFFFF) + packed + _STORED_END.pack(adler32(packed))
    return bytes((BATCH_VERSION,)) + isal_zlib.compress(packed, _SMALL_LEVEL if size <= _SMALL_BYTES else _LEVEL)


def decode_batch(data: bytes) -> list[QueuedUrl]:
    urls = _decode(data)
    try:
        is_well_formed = (
            not urls or _are_well_formed(urls) or _are_well_formed(urls := [*map(_with_int_priority, urls)])
        )
    except Exception as error:
        raise BatchFormatError(f"batch cannot be decoded: {error!r}") from error
    if not is_well_formed:
        raise BatchFormatError(
            "batch has an entry with too many or too few fields, or a field of a wrong type or out of range"
        )
    return urls


def _decode(data: bytes) -> list[QueuedUrl]:
    """Decode a batch without checking the fields."""
    if not data or data[0] != BATCH_VERSION:
        found = data[0] if data else "nothing"
        raise BatchFormatError(f"batch format version is {found}; this version reads {BATCH_VERSION}")
    try:
        rows = msgpack.unpackb(isal_zlib.decompress(data[1:]), raw=False, strict_map_key=False)
        # Faster than the constructor; it does not check the number of fields.
        return [_new_url(QueuedUrl, row) for row in rows]
    except Exception as error:
        raise BatchFormatError(f"batch cannot be decoded: {error!r}") from error


def decode_if_sound(batches: Iterable[bytes]) -> list[QueuedUrl] | None:
    """Return the URLs of batches, checked all at once; None if any may be malformed or out of range."""
    try:
        urls = [url for data in batches for url in _decode(data)]
        is_sound = not urls or (_are_well_formed(urls) and _are_in_range(urls))
    except (BatchFormatError, ValueError):
        return None
    return urls if is_sound else None


def unsound_urls(urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
    """Return the URLs with a field out of range, which no node sends."""
    return [] if not urls or _are_in_range(urls) else [url for url in urls if not _are_in_range([url])]


def decode_sound_batch(data: bytes) -> list[QueuedUrl]:
    urls = decode_batch(data)
    if unsound := unsound_urls(urls):
        raise BatchFormatError(
            f"{len(unsound)} URLs have a host, priority, flags or request out of range: {unsound[0][:4]}"
        )
    return urls


_new_url = tuple.__new__


def _with_int_priority(url: QueuedUrl) -> QueuedUrl:
    """Return a URL with an int priority; earlier versions sent a bool or float if the spider had set one."""
    is_odd = len(url) == len(QueuedUrl._fields) and type(url.priority) in (bool, float)
    return url._replace(priority=int(url.priority)) if is_odd else url


# Exact types, so that a bool does not pass for a number.
_FIELD_TYPES = ({int}, {str}, {int}, {int}, {bytes})


def _are_well_formed(urls: Sequence[QueuedUrl]) -> bool:
    # By field, so that the loops run inside built-in functions.
    fields = tuple(zip(*urls, strict=True))
    if tuple({*map(type, field)} for field in fields) != _FIELD_TYPES:
        return False
    keys = fields[0]
    return bool(min(keys) >= 0 and max(keys) < 1 << 64)


def _are_in_range(urls: Sequence[QueuedUrl]) -> bool:
    _, all_hosts, priorities, flags, bodies = zip(*urls, strict=True)
    hosts = {*all_hosts}
    text = "".join(hosts)
    return bool(
        min(priorities) >= -PRIORITY_END
        and max(priorities) < PRIORITY_END
        and min(flags) >= 0
        and max(flags) < FLAGS_END
        and all(hosts)
        and all(bodies)
        and max(map(len, hosts)) <= HOST_CHARS_MAX
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def traits_of(config: Config) -> Traits | None:
    found = (module.traits_of(config) for module in modules_of("url"))
    return next((traits for traits in found if traits is not None), None)


def stats_of(flags: int) -> Iterable[str]:
    traits = flags >> TRAITS_SHIFT & _TRAITS_MASK
    return [stat for module in modules_of("url") for stat in module.stats_of(traits)] if traits else ()


class TimedFormatError(BigcrawlError):
    pass


class TimedUrl(NamedTuple):
    """A URL due again, in seconds since 1970.

    Of two copies with one `number`, a count of its ends, only one is used.
    """

    due_s: int
    number: int
    url: QueuedUrl


def encode_timed(urls: Sequence[TimedUrl]) -> bytes:
    packed: bytes = msgpack.packb([(due_s, number, *url) for due_s, number, url in urls], use_bin_type=True)
    return bytes((_TIMED_VERSION,)) + isal_zlib.compress(packed, _LEVEL)


def decode_timed(data: bytes) -> list[TimedUrl]:
    if not data or data[0] != _TIMED_VERSION:
        found = data[0] if data else "nothing"
        raise TimedFormatError(f"timed URLs have format version {found}; this version reads {_TIMED_VERSION}")
    try:
        rows = msgpack.unpackb(isal_zlib.decompress(data[1:]), raw=False, strict_map_key=False)
        is_sound = all(_is_sound(row) for row in rows)
        return [TimedUrl(row[0], row[1], QueuedUrl(*row[2:])) for row in rows] if is_sound else _raise_format_error()
    except TimedFormatError:
        raise
    except Exception as error:
        raise TimedFormatError(f"timed URLs cannot be decoded: {error!r}") from error


def _is_sound(row: Sequence[Any]) -> bool:
    if tuple(map(type, row)) != _TIMED_TYPES:
        return False
    due_s: int = row[0]
    number: int = row[1]
    key: int = row[2]
    is_in_range = 0 <= due_s < _DUE_S_MAX and 0 < number < 1 << 32 and 0 <= key < 1 << 64
    return is_in_range and not unsound_urls([QueuedUrl(*row[2:])])


def _raise_format_error() -> list[TimedUrl]:
    raise TimedFormatError("a timed URL has too many or too few fields, or one of a wrong type or out of range")
