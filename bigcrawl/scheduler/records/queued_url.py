"""A URL as it travels from a node's outbox through inbox, disk and admission (steps 3 to 7).

The frontier sorts and counts by the four outer fields. Only `bigcrawl.scheduler.adapter.request_codec` decodes `body`.
A batch on the wire or on disk is

    u8 format version | zlib( msgpack [ [key, host, priority, flags, body], ... ] )

An unknown version is refused. Pickle is never used.
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
UNCHECKED = 1  # queued each time it is offered: the seen check is skipped (Scrapy's dont_filter)
# 2 is `allowances.COUNTED`
TRAP_SHIFT = 2  # the marks of `bigcrawl.url.shape` begin at this bit
LISTED_SHIFT = 19  # three bits: how often its site says that it changes, a code of `bigcrawl.revisiting.hints`
ASKED = 1 << 23  # its HEAD was answered, or failed: it is fetched next
# 24 to 31: what a URL in Redis has received from pages that link to it, see `records.votes`
RANGES_SHIFT = 32  # the 24-bit mark of the blacklist's address ranges begins at this bit
UNRUNNABLE = 1 << 56  # the node that took it could not run its request, see `queues.unrunnable`
FLAGS_END = 1 << 57
HOST_CHARS_MAX = 255
PRIORITY_END = 1 << 31

_LISTED_MASK = 0b111 << LISTED_SHIFT

# isal's level 1 packs a large batch in about 0.1 us a URL; higher levels gain little on text this short. It makes a
# code for the text first, which takes 4 to 8 us. Level 0 has a code of its own, 120 bytes that go with each batch: of a
# few URLs, as most batches of a node are, it takes a sixth of the time.
_SMALL_BYTES = 1_024
_SMALL_LEVEL, _LEVEL = 0, 1


class BatchFormatError(BigcrawlError):
    """The bytes are not a batch that this version can read."""


class QueuedUrl(NamedTuple):
    """One URL waiting to be fetched.

    Attributes:
        key: unsigned 64-bit key of the canonical URL; method and body are part of it unless the method is GET.
        host: lower-case A-label or IP literal, the unit of queue and delay.
        priority: any 32-bit signed integer; higher first, 0 is ordinary.
        flags: bits, see `UNCHECKED` and the constants after it.
        body: everything else, opaque to the frontier.
    """

    key: int
    host: str
    priority: int
    flags: int
    body: bytes


def listed_in(flags: int) -> int:
    """Return how often a URL's site says that it changes, as a code; 0 for nothing."""
    return (flags & _LISTED_MASK) >> LISTED_SHIFT


def encode_batch(urls: Sequence[QueuedUrl]) -> bytes:
    """Return the batch as bytes, in order."""
    packed: bytes = msgpack.packb(urls, use_bin_type=True)
    level = _SMALL_LEVEL if len(packed) <= _SMALL_BYTES else _LEVEL
    return bytes((BATCH_VERSION,)) + isal_zlib.compress(packed, level)


def decode_batch(data: bytes) -> list[QueuedUrl]:
    """Return the URLs of a batch, in order.

    Raises:
        BatchFormatError: unknown version, damaged bytes, or fields of the wrong type or range.
    """
    if not data or data[0] != BATCH_VERSION:
        found = data[0] if data else "nothing"
        raise BatchFormatError(f"batch format version is {found}; this version reads {BATCH_VERSION}")
    try:
        rows = msgpack.unpackb(isal_zlib.decompress(data[1:]), raw=False, strict_map_key=False)
        # The class's own constructor is Python. This one is not, and leaves the number of fields to the check.
        urls = [_new_url(QueuedUrl, row) for row in rows]
        is_well_formed = not urls or _are_well_formed(urls) or _are_well_formed(urls := [*map(_mended, urls)])
    except Exception as error:
        raise BatchFormatError(f"batch cannot be decoded: {error!r}") from error
    if not is_well_formed:
        raise BatchFormatError(
            "batch has an entry with too many or too few fields, or a field of a wrong type or out of range"
        )
    return urls


def unsound_urls(urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
    """Return the URLs of a decoded batch with a field out of range. No node sends such URLs."""
    return [] if not urls or _are_in_range(urls) else [url for url in urls if not _are_in_range([url])]


def decode_sound_batch(data: bytes) -> list[QueuedUrl]:
    """Return the URLs of a batch, in order. Raises as `decode_batch`, and for a URL of `unsound_urls` too."""
    urls = decode_batch(data)
    if unsound := unsound_urls(urls):
        raise BatchFormatError(
            f"{len(unsound)} URLs have a host, priority, flags or request out of range: {unsound[0][:4]}"
        )
    return urls


_new_url = tuple.__new__


def _mended(url: QueuedUrl) -> QueuedUrl:
    """Return a URL with an int priority; earlier versions sent a bool or float if the spider had set one."""
    is_odd = len(url) == len(QueuedUrl._fields) and type(url.priority) in (bool, float)
    return url._replace(priority=int(url.priority)) if is_odd else url


# The type of each field; exact, so that a bool does not pass for a number.
_FIELD_TYPES = ({int}, {str}, {int}, {int}, {bytes})


def _are_well_formed(urls: Sequence[QueuedUrl]) -> bool:
    # By field rather than by URL, so that the loops run inside built-in functions.
    fields = tuple(zip(*urls, strict=True))
    if tuple({*map(type, field)} for field in fields) != _FIELD_TYPES:
        return False
    keys = fields[0]
    return bool(min(keys) >= 0 and max(keys) < 1 << 64)


def _are_in_range(urls: Sequence[QueuedUrl]) -> bool:
    _, all_hosts, priorities, flags, bodies = zip(*urls, strict=True)
    hosts = {*all_hosts}  # of a batch they are few
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
