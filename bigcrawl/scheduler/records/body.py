"""Reads single fields of a `QueuedUrl.body` without decoding its objects.

A body is msgpack [url, depth, payload]. `bigcrawl.scheduler.adapter.request_codec` writes these fields, and decodes
them. In a crawl that visits pages again there may be two more: what is known of the page (packed by
`bigcrawl.revisiting.visit`), or empty; and in the next try of a URL the body that it had before any try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack

from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_FIELDS = 3
_LIST_OF_3, _LIST_OF_4, _LIST_OF_5 = b"\x93", b"\x94", b"\x95"  # how msgpack begins lists of so many
_PAYLOADS = frozenset((dict, int, type(None)))
_pack = msgpack.Packer().pack
_new_tuple = tuple.__new__  # the named tuples' own constructors are Python


class BodySummary(NamedTuple):
    """The fields of a body that can be read without decoding objects."""

    url: str
    is_canonical: bool
    has_errback: bool
    methods: tuple[str, ...] = ()


def look_at_body(body: bytes) -> BodySummary:
    """Return the URL of a body, two facts about its request, and the names of its callback and errback.

    Raises:
        ValueError: the body is damaged.
    """
    url, _, payload, _ = _fields(body)
    if payload is None or isinstance(payload, int):
        return _new_tuple(BodySummary, (url, True, False, ()))
    named = payload.get("callback"), payload.get("errback")
    return _new_tuple(BodySummary, (url, False, bool(named[1]), tuple(map(str, filter(None, named)))))


def look_at_address(body: bytes) -> tuple[str, int]:
    """Return the canonical URL and the depth of a body; a URL without a canonical form is returned unchanged.

    Raises:
        ValueError: the body is damaged.
    """
    url, depth, payload, _ = _fields(body)
    if payload is None or isinstance(payload, int):
        return url, depth
    try:
        return canonicalize(url), depth
    except UrlError:
        return url, depth


def address_or_none(body: bytes) -> tuple[str, int]:
    """Like `look_at_address`, but of a damaged body: no URL, and depth 0. Its URL is set aside when it is taken."""
    try:
        return look_at_address(body)
    except ValueError:
        return "", 0


def look_at_link(body: bytes) -> tuple[str, int, int]:
    """Return the URL of a body, its depth, and the priority that the spider gave, whatever a queue made of it.

    Raises:
        ValueError: the body is damaged.
    """
    url, depth, payload, _ = _fields(body)
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
    url, _, payload, _ = _fields(body)
    fields = payload if isinstance(payload, dict) else {}
    data = fields.get("body") or b""
    return RequestSummary(url, str(fields.get("method") or "GET"), data, bool(fields.get("dont_filter")))


def is_seed(body: bytes) -> bool:
    """Whether a body belongs to a start request, and not to a redirect of one.

    Raises:
        ValueError: the body is damaged.
    """
    _, depth, payload, _ = _fields(body)
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return depth == 0 and not (meta and meta.get("redirect_times"))


def look_at_origin(body: bytes) -> tuple[int, str | None]:
    """Return the depth of a body, and its request's Referer header if it has one.

    Raises:
        ValueError: the body is damaged.
    """
    _, depth, payload, _ = _fields(body)
    headers = payload.get("headers", {}) if isinstance(payload, dict) else {}
    referrer = next((values[0] for name, values in headers.items() if name in {b"Referer", "Referer"}), None)
    return depth, referrer.decode("latin-1") if isinstance(referrer, bytes) else referrer


def look_at_meta(body: bytes, keys: Iterable[str]) -> dict[str, bytes]:
    """Return what the meta of a body has under these keys, each value packed as it is there.

    Raises:
        ValueError: the body is damaged.
    """
    _, _, payload, _ = _fields(body)
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return {key: msgpack.packb(meta[key]) for key in keys if key in meta} if isinstance(meta, dict) else {}


def visit_in(body: bytes) -> bytes:
    """Return what a body says of an earlier visit; empty if its page was not visited yet.

    Raises:
        ValueError: the body is damaged.
    """
    *_, rest = _fields(body)
    return rest[0] if rest else b""


def as_next_try(body: bytes, before: bytes) -> bytes:
    """Return the body of a URL's next try, which remembers what the body before says of visits, and the first body.

    Raises:
        ValueError: one of them is damaged.
    """
    *_, rest = _fields(before)
    visit, first = (*rest, b"", b"")[:2]
    return b"".join((_LIST_OF_5, _plain_part(body), _pack(visit), _pack(first or _LIST_OF_3 + _plain_part(before))))


def for_revisit(body: bytes, visit: bytes) -> bytes:
    """Return the body of a URL's next visit: as it was before any tries, with what is known of its page now.

    Raises:
        ValueError: the body is damaged.
    """
    *_, rest = _fields(body)
    first = rest[1] if len(rest) > 1 else body
    return b"".join((_LIST_OF_4, _plain_part(first), _pack(visit)))


def _fields(body: bytes) -> tuple[str, int, dict[str, Any] | int | None, list[bytes]]:
    """Return url, depth, payload, and the fields beyond them.

    Raises:
        ValueError: the body is damaged.
    """
    try:
        url, depth, payload, *rest = msgpack.unpackb(body, raw=False, strict_map_key=False)
    except TypeError as error:
        raise ValueError(f"a body is no list of fields: {error}") from error
    if type(url) is not str or type(depth) is not int or type(payload) not in _PAYLOADS:
        raise ValueError("a body has a URL, a depth or a payload of a wrong type")
    return url, depth, payload, rest


def _plain_part(body: bytes) -> bytes:
    """The bytes of a body's first three fields."""
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=max(len(body), 1))
    unpacker.feed(body)
    unpacker.read_array_header()
    for _ in range(_PLAIN_FIELDS):
        unpacker.skip()
    return body[1 : unpacker.tell()]
