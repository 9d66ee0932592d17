"""Reads single fields of a `QueuedUrl.body` without decoding its objects.

A body is msgpack [url, depth, payload], see `adapter.request_codec`. With revisits two fields may follow: a feature's
data about the page, and in the next try of a URL the body before any try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack

from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_FIELDS = 3
_LIST_OF_3, _LIST_OF_4, _LIST_OF_5 = b"\x93", b"\x94", b"\x95"
_PAYLOADS = frozenset((dict, int, type(None)))
_ORIGINS = ([int, str], [int, str, int, str])
_pack = msgpack.Packer().pack
_new_tuple = tuple.__new__


class BodySummary(NamedTuple):
    url: str
    is_canonical: bool
    has_errback: bool
    methods: tuple[str, ...] = ()


def look_at_body(body: bytes) -> BodySummary:
    """Return the URL of a body, and the names of its callback and errback; a ValueError means damage."""
    url, _, payload, _ = _decode_fields(body)
    if payload is None or isinstance(payload, int):
        return _new_tuple(BodySummary, (url, True, False, ()))
    named = payload.get("callback"), payload.get("errback")
    return _new_tuple(BodySummary, (url, False, bool(named[1]), tuple(map(str, filter(None, named)))))


def look_at_address(body: bytes) -> tuple[str, int]:
    """Return the canonical URL, or the given one if there is none, and the depth."""
    url, depth, payload, _ = _decode_fields(body)
    if payload is None or isinstance(payload, int):
        return url, depth
    try:
        return canonicalize(url), depth
    except UrlError:
        return url, depth


def address_or_none(body: bytes) -> tuple[str, int]:
    """Like `look_at_address`; ("", 0) for a damaged body, whose URL is withheld when it is taken."""
    try:
        return look_at_address(body)
    except ValueError:
        return "", 0


def look_at_link(body: bytes) -> tuple[str, int, int]:
    """Return the URL, the depth and the spider's priority, which the queue's priority may differ from."""
    url, depth, payload, _ = _decode_fields(body)
    if isinstance(payload, dict):
        payload = payload.get("priority")
    return url, depth, int(payload or 0)


class RequestSummary(NamedTuple):
    url: str
    method: str
    body: bytes
    dont_filter: bool


def look_at_request(body: bytes) -> RequestSummary:
    url, _, payload, _ = _decode_fields(body)
    fields = payload if isinstance(payload, dict) else {}
    data = fields.get("body") or b""
    return RequestSummary(url, str(fields.get("method") or "GET"), data, bool(fields.get("dont_filter")))


def is_seed(body: bytes) -> bool:
    """Whether a body belongs to a start request rather than to a redirect of one."""
    _, depth, payload, _ = _decode_fields(body)
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return depth == 0 and not (meta and meta.get("redirect_times"))


def look_at_origin(body: bytes) -> tuple[int, str | None]:
    """Return a body's depth, and the page where it was found, or its Referer header; None if there is neither."""
    _, depth, payload, _ = _unpack_body(body)
    if isinstance(payload, list):
        return depth, payload[1]
    headers = payload.get("headers", {}) if isinstance(payload, dict) else {}
    referrer = next((values[0] for name, values in headers.items() if name in {b"Referer", "Referer"}), None)
    return depth, referrer.decode("latin-1") if isinstance(referrer, bytes) else referrer


def look_at_meta(body: bytes, keys: Iterable[str]) -> dict[str, bytes]:
    _, _, payload, _ = _decode_fields(body)
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return {key: msgpack.packb(meta[key]) for key in keys if key in meta} if isinstance(meta, dict) else {}


def look_at_header(body: bytes, name: bytes) -> list[bytes]:
    _, _, payload, _ = _decode_fields(body)
    headers = payload.get("headers") if isinstance(payload, dict) else None
    values = headers.get(name) if isinstance(headers, dict) else None
    return [value for value in values if isinstance(value, bytes)] if isinstance(values, list) else []


def known_in(body: bytes) -> bytes:
    *_, rest = _decode_fields(body)
    return rest[0] if rest else b""


def as_next_try(body: bytes, before: bytes) -> bytes:
    *_, rest = _decode_fields(before)
    known, first = (*rest, b"", b"")[:2]
    return b"".join((_LIST_OF_5, _plain_part(body), _pack(known), _pack(first or _LIST_OF_3 + _plain_part(before))))


def with_known(body: bytes, known: bytes) -> bytes:
    """Return the body for a URL's next visit: its body before any try, with new data about the page."""
    *_, rest = _decode_fields(body)
    first = rest[1] if len(rest) > 1 else body
    return b"".join((_LIST_OF_4, _plain_part(first), _pack(known)))


def _decode_fields(body: bytes) -> tuple[str, int, dict[str, Any] | int | None, list[bytes]]:
    url, depth, payload, rest = _unpack_body(body)
    return url, depth, payload[0] if isinstance(payload, list) else payload, rest


def _unpack_body(body: bytes) -> tuple[str, int, dict[str, Any] | list[Any] | int | None, list[bytes]]:
    try:
        url, depth, payload, *rest = msgpack.unpackb(body, raw=False, strict_map_key=False)
    except TypeError as error:
        raise ValueError(f"a body is not a list of fields: {error}") from error
    is_found = type(payload) is list and [*map(type, payload)] in _ORIGINS
    if type(url) is not str or type(depth) is not int or not (type(payload) in _PAYLOADS or is_found):
        raise ValueError("a body has a URL, a depth or a payload of a wrong type")
    return url, depth, payload, rest


def _plain_part(body: bytes) -> bytes:
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=max(len(body), 1))
    unpacker.feed(body)
    unpacker.read_array_header()
    for _ in range(_PLAIN_FIELDS):
        unpacker.skip()
    return body[1 : unpacker.tell()]
