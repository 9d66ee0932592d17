"""The fields of a `QueuedUrl.body` that can be read without making objects of it.

A body is msgpack [url, depth, payload]; `bigcrawl.scheduler.adapter.request_codec` writes it, and reads it whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack

from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.url.key import UrlKey

    Marks = Callable[[str, int], int]
    KeyOf = Callable[[str, str, bytes, bytes], UrlKey]

_new_tuple = tuple.__new__  # the named tuples' own constructors are Python


class Glance(NamedTuple):
    """What can be told of a body without making anything of it."""

    url: str
    is_canonical: bool
    has_errback: bool


def look_at_body(body: bytes) -> Glance:
    """Look at a body.

    Raises:
        ValueError: the body is damaged.
    """
    url, _, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    if payload is None or isinstance(payload, int):
        return _new_tuple(Glance, (url, True, False))
    return _new_tuple(Glance, (url, False, bool(payload.get("errback"))))


def look_at_address(body: bytes) -> tuple[str, int]:
    """Return the canonical URL and the depth of a body; the URL as it is where it has no canonical form.

    Raises:
        ValueError: the body is damaged.
    """
    url, depth, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    if payload is None or isinstance(payload, int):
        return url, depth
    try:
        return canonicalize(url), depth
    except UrlError:
        return url, depth


def is_seed(body: bytes) -> bool:
    """Whether a body is of a start request, and no redirect of one.

    Raises:
        ValueError: the body is damaged.
    """
    _, depth, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return depth == 0 and not (meta and meta.get("redirect_times"))


def look_at_origin(body: bytes) -> tuple[int, str | None]:
    """Return the depth of a body, and the URL that its request names as referrer, if it names one.

    Raises:
        ValueError: the body is damaged.
    """
    _, depth, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    headers = payload.get("headers", {}) if isinstance(payload, dict) else {}
    referrer = next((values[0] for name, values in headers.items() if name in {b"Referer", "Referer"}), None)
    return depth, referrer.decode("latin-1") if isinstance(referrer, bytes) else referrer
