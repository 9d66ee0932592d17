"""Reads single fields of a `QueuedUrl.body` without decoding its objects.

A body is msgpack [url, depth, payload]. `bigcrawl.scheduler.adapter.request_codec` writes it, and decodes all of it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgpack

from bigcrawl.url.canonical import UrlError, canonicalize

_new_tuple = tuple.__new__  # the named tuples' own constructors are Python


class BodySummary(NamedTuple):
    """The fields of a body that can be read without decoding objects."""

    url: str
    is_canonical: bool
    has_errback: bool


def look_at_body(body: bytes) -> BodySummary:
    """Return the URL of a body and two facts about its request.

    Raises:
        ValueError: the body is damaged.
    """
    url, _, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    if payload is None or isinstance(payload, int):
        return _new_tuple(BodySummary, (url, True, False))
    return _new_tuple(BodySummary, (url, False, bool(payload.get("errback"))))


def look_at_address(body: bytes) -> tuple[str, int]:
    """Return the canonical URL and the depth of a body; a URL without a canonical form is returned unchanged.

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


def look_at_link(body: bytes) -> tuple[str, int, int]:
    """Return the URL of a body, its depth, and the priority that the spider gave, whatever a queue made of it.

    Raises:
        ValueError: the body is damaged.
    """
    url, depth, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    if isinstance(payload, dict):
        payload = payload.get("priority")
    return url, depth, int(payload or 0)


class RequestSummary(NamedTuple):
    """The fields of a body by which Scrapy tells requests apart."""

    url: str
    method: str
    body: bytes
    dont_filter: bool


def look_at_request(body: bytes) -> RequestSummary:
    """Return these fields of a body.

    Raises:
        ValueError: the body is damaged.
    """
    url, _, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    fields = payload if isinstance(payload, dict) else {}
    data = fields.get("body") or b""
    return RequestSummary(url, str(fields.get("method") or "GET"), data, bool(fields.get("dont_filter")))


def is_seed(body: bytes) -> bool:
    """Whether a body belongs to a start request, and not to a redirect of one.

    Raises:
        ValueError: the body is damaged.
    """
    _, depth, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return depth == 0 and not (meta and meta.get("redirect_times"))


def look_at_origin(body: bytes) -> tuple[int, str | None]:
    """Return the depth of a body, and its request's Referer header if it has one.

    Raises:
        ValueError: the body is damaged.
    """
    _, depth, payload = msgpack.unpackb(body, raw=False, strict_map_key=False)
    headers = payload.get("headers", {}) if isinstance(payload, dict) else {}
    referrer = next((values[0] for name, values in headers.items() if name in {b"Referer", "Referer"}), None)
    return depth, referrer.decode("latin-1") if isinstance(referrer, bytes) else referrer
