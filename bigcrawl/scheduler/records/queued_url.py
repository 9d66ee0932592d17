"""A URL as it travels from a node's outbox through inbox, disk and admission.

A batch on the wire or on disk is u8 format version | zlib(msgpack [[key, host, priority, flags, body], ...]). An
unknown version is refused. Pickle is never used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH_VERSION = 1

# `QueuedUrl.flags`, one bit each.
UNCHECKED = 1  # queued each time it is offered, without the seen check (Scrapy's dont_filter)
# 2 belongs to a feature: the URL is counted in a total
TRAITS_SHIFT = 2  # the first bit of features' traits, see `records.url_traits`
LISTED_SHIFT = 19  # three bits: the site's declared change frequency, a code of `listings.changefreqs`
ASKED = 1 << 23  # its HEAD was answered, or failed: it is fetched next
ADMITTED_SHIFT = 24  # eight bits of a feature while the URL is in Redis, see `StepPart.admitted`
RANGES_SHIFT = 32  # the first bit of the 24-bit mark of the blacklist's address ranges
UNRUNNABLE = 1 << 56  # the node that took it could not run its request, see `queues.unrunnable`
FLAGS_END = 1 << 57
HOST_CHARS_MAX = 255
PRIORITY_END = 1 << 31

_LISTED_MASK = 0b111 << LISTED_SHIFT

# Level 1 first builds a code, in 4 to 8 us. Level 0 has a fixed code, and suits the small batches that nodes mostly
# send.
_SMALL_BYTES = 1_024
_SMALL_LEVEL, _LEVEL = 0, 1


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
    packed: bytes = msgpack.packb(urls, use_bin_type=True)
    level = _SMALL_LEVEL if len(packed) <= _SMALL_BYTES else _LEVEL
    return bytes((BATCH_VERSION,)) + isal_zlib.compress(packed, level)


def decode_batch(data: bytes) -> list[QueuedUrl]:
    if not data or data[0] != BATCH_VERSION:
        found = data[0] if data else "nothing"
        raise BatchFormatError(f"batch format version is {found}; this version reads {BATCH_VERSION}")
    try:
        rows = msgpack.unpackb(isal_zlib.decompress(data[1:]), raw=False, strict_map_key=False)
        # Faster than the constructor; it does not check the number of fields.
        urls = [_new_url(QueuedUrl, row) for row in rows]
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
