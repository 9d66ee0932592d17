"""Turns requests and Links into bytes and back (steps 1 to 3 and 9 of a URL's life): msgpack only, never pickle.

A `QueuedUrl.body` is msgpack [url, depth, payload], with a fourth field if its page was fetched before
(`bigcrawl.scheduler.records.body`). The payload of a plain link is nil, its priority if that is not 0, [priority,
parent page], or [priority, parent page, time in seconds, address of its server]. Any other payload is the non-default
part of `Request.to_dict`, with callbacks by name and values packed by `bigcrawl.scheduler.adapter.values.codec`. Users'
values are checked here, before anything is sent.

A *member* is how Redis holds an admitted URL: b"<seq>:" + msgpack [key, priority, flags, attempts, body].
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack
from scrapy import Request

from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.given import no_method, odd_name, whole_number
from bigcrawl.scheduler.adapter.values.codec import PLAIN, fields_of_request, request_of_fields
from bigcrawl.scheduler.records.member import clamp_priority
from bigcrawl.scheduler.records.queued_url import LISTED_SHIFT, TRAITS_SHIFT, UNCHECKED, QueuedUrl
from bigcrawl.url.canonical import canonicalize, host_of, refuse_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from scrapy import Spider

    from bigcrawl.links import Links
    from bigcrawl.scheduler.adapter.values.codec import ValueCodec
    from bigcrawl.url.key import UrlKey

    Traits = Callable[[str, int], int]
    Payload = dict[str, Any] | list[Any] | int | None
    KeyOf = Callable[[str, str, bytes, bytes], UrlKey]


CHANGE = "bigcrawl_visit"
"""The key of meta that tells a spider how a page has changed."""

# Set by one fetch, and untrue of the next.
_TRANSIENT_META = ("download_latency", CHANGE)
ENTRY = "bigcrawl_entry"
"""The key of meta that names the entry of a list, or of another crawl's queue, behind a request."""
ONCE = "bigcrawl_once"
"""The key of meta whose values make a URL's requests distinct: each is fetched once, even if the URL was seen."""

PARENT = "bigcrawl_parent"
"""The key of meta that names the page on which a link of a batch was found, if recorded."""
FOUND = "bigcrawl_found"
"""The key of meta for when, in seconds since 1970, and on which server a link was found, if recorded."""
PARENT_BYTES_MAX = 1_024
"""The URL of a longer parent is not recorded, because it would be stored with each link of the page."""

WHOLE = "the whole"
_LIVE = "live"
"""The field of a payload for a request kept in a process: its token, and whether it is needed."""
REMEDY = (
    "store plain data instead, or teach the type (BIGCRAWL_STORED_TYPES), or keep such requests in memory "
    "(BIGCRAWL_NOT_STORABLE): docs/requests.md"
)

BODY_BYTES_MAX = 4 << 20  # Redis holds thousands of requests, and dozens travel in one message, at most 512 MB
_LIST_OF_3 = b"\x93"  # msgpack's first byte of a list of three
_NIL, _BYTE_MAX = 0xC0, 127  # msgpack's byte for nil; a number up to 127 is its own byte
_pack = msgpack.Packer().pack
_new_tuple = tuple.__new__
_host_at = lru_cache(1 << 14)(host_of)  # of an origin with its slash: most links of a page have the same one


class LinkOrigin(NamedTuple):
    """Where links were found; `time_s` is 0 if only the page is recorded."""

    page: str = ""
    time_s: int = 0
    address: str = ""


NO_ORIGIN = LinkOrigin()


class Mark(NamedTuple):
    token: bytes
    is_needed: bool


class LostRequestError(ValueError):
    """A stored request lacks values that only the process that stored it had; `request` is the rest."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request.url} held values from the memory of a process that has ended or is another")
        self.request = request


def encode_request(
    request: Request,
    spider: Spider,
    *,
    key_of: KeyOf,
    checked: bool,
    url_bytes_max: int,
    traits: Traits | None = None,
    jar: object = None,
    values: ValueCodec = PLAIN,
    live: Mark | None = None,
) -> tuple[QueuedUrl, str]:
    """Return the request as a queued URL, and its canonical URL; `key_of` is the crawl's `Keys.of_request`.

    `jar` distinguishes the request from others to the same URL: a start request's cookie jar, its entry, or its value
    of `ONCE`. `live` marks the request that this process keeps whole, if the body holds only the rest of it.

    Raises:
        UrlError: it has no http(s) URL, or one that is too long, or has a user or password.
        RequestNotStorableError: one of its values cannot be stored; names the key path.
    """
    refuse_credentials(request.url)
    canonical = canonicalize(request.url, url_bytes_max)
    priority = _require_integer(request, "priority", request.priority)
    depth = _require_integer(request, "meta['depth']", (request._meta or {}).get("depth", 0))
    payload = _payload_of_request(request, spider, priority, values)
    if live is not None:
        payload[_LIVE] = [*live]
    body = _packed_body(request.url, depth, payload, values)
    key = key_of(canonical, request.method, request.body, jar_bytes(jar))
    flags = (0 if checked else UNCHECKED) | (traits(canonical, depth) << TRAITS_SHIFT if traits else 0)
    return QueuedUrl(key, host_of(canonical), clamp_priority(priority), flags, body), canonical


def encode_stored(
    fields: dict[str, Any], *, key_of: KeyOf, url_bytes_max: int, traits: Traits | None = None, entry: str = ""
) -> tuple[QueuedUrl, str]:
    """Return another crawler's stored request as a queued URL, subject to the seen check, and its canonical URL.

    `fields` are the result of `Request.to_dict` in that crawler, not validated. `entry` identifies the request if it
    has `dont_filter`, so that it is queued once even if its URL was seen.

    Raises:
        UrlError: it has no http(s) URL, or one that is too long.
        RequestNotStorableError: a field is missing, or has a type unknown to Scrapy; names the field.
    """
    url = fields.get("url")
    for name, kinds in _STORED.items():
        if not isinstance(fields.get(name), kinds):
            kind = type(fields.get(name)).__name__
            raise RequestNotStorableError(
                str(url)[:200], name, f"is a {kind}: this type cannot be stored; use the one that Scrapy's Request has"
            )
    refuse_credentials(str(url))
    canonical = canonicalize(str(url), url_bytes_max)
    method, data = str(fields.get("method") or "GET"), fields.get("body") or b""
    meta = dict(fields.get("meta") or {})
    if fields.get("dont_filter"):
        meta[ENTRY] = entry
    depth = meta.get("depth", 0)
    priority = clamp_priority(int(fields.get("priority") or 0))
    whole = {**fields, "meta": meta, "method": method}
    body = _packed_body(str(url), depth if type(depth) is int else 0, _payload_of(whole, str(url), priority))
    key = key_of(canonical, method, data, jar_bytes(meta.get(ENTRY)))
    flags = traits(canonical, depth if type(depth) is int else 0) << TRAITS_SHIFT if traits else 0
    return QueuedUrl(key, host_of(canonical), priority, flags, body), canonical


_NONE = type(None)
_STORED: dict[str, tuple[type, ...]] = {
    "url": (str,),
    "method": (str, _NONE),
    "body": (bytes, _NONE),
    "meta": (dict, _NONE),
    "priority": (int, float, _NONE),
    "headers": (dict, _NONE),
    "cookies": (dict, list, _NONE),
    "encoding": (str, _NONE),
    "callback": (str, _NONE),
    "errback": (str, _NONE),
    "flags": (list, _NONE),
    "cb_kwargs": (dict, _NONE),
    "_class": (str, _NONE),
}


def jar_bytes(jar: object) -> bytes:
    """Return the bytes of a cookie jar, or an entry, in a key; empty for None, Scrapy's default jar."""
    return b"" if jar is None else PLAIN.pack(jar)


def links_encoder(
    links: Links,
    depth: int,
    traits: Traits | None = None,
    values: ValueCodec = PLAIN,
    origin: LinkOrigin = NO_ORIGIN,
) -> Callable[[UrlKey, str], QueuedUrl]:
    """Return a function that turns a key and canonical URL into a queued URL. Raises RequestNotStorableError."""
    after_url = links_tail(links, depth, values, origin)
    priority = clamp_priority(links.priority)
    listed = links.changefreq_code << LISTED_SHIFT

    def encode(key: UrlKey, url: str) -> QueuedUrl:
        flags = listed | traits(url, depth) << TRAITS_SHIFT if traits else listed
        host = _host_at(url[: url.find("/", 8) + 1])
        return _new_tuple(QueuedUrl, (key, host, priority, flags, _LIST_OF_3 + _pack(url) + after_url))

    return encode


def links_tail(links: Links, depth: int, values: ValueCodec = PLAIN, origin: LinkOrigin = NO_ORIGIN) -> bytes:
    """Return the bytes after the URL, which the bodies of a batch's URLs share."""
    payload = _links_payload(links, origin)
    if payload is None and 0 <= depth <= _BYTE_MAX:  # as on nearly every page
        return bytes((depth, _NIL))
    source = next(iter(links.urls), "(no URL)")
    return tail_of(_packed_body(source, depth, payload, values), source)


def _bounded(origin: LinkOrigin) -> LinkOrigin:
    """Return an origin without its page if that is too long: each of the page's links would carry it."""
    return origin._replace(page="") if len(origin.page.encode()) > PARENT_BYTES_MAX else origin


def tail_of(body: bytes, url: str) -> bytes:
    return body[1 + len(_pack(url)) :]


def with_url(url: str, tail: bytes) -> bytes:
    packed_url: bytes = _pack(url)
    return _LIST_OF_3 + packed_url + tail


def decode_body(body: bytes, values: ValueCodec = PLAIN) -> tuple[str, int, Payload]:
    url, depth, payload, *_ = values.unpack(body)
    return url, depth, payload


def decode_request(
    body: bytes,
    spider: Spider,
    instead_of: Callable[[str], str] = str,
    *,
    values: ValueCodec = PLAIN,
    kept: Callable[[bytes, int], Request | None] | None = None,
) -> Request:
    """Return the request in a body.

    `instead_of` maps a callback's name to the method to call. `kept` returns the request of a token, given its depth;
    None if this process does not keep it.

    Raises:
        LostRequestError: a needed request is not kept here.
        ValueError: the spider no longer has a method with the callback's name, or the body is damaged.
    """
    url, depth, payload = decode_body(body, values)
    if not isinstance(payload, dict):
        meta: dict[str, Any] = {"depth": depth, "verbatim_url": True}
        if isinstance(payload, list):
            payload, meta[PARENT], *found = payload
            if found:
                meta[FOUND] = found
        return Request(url, meta=meta, priority=payload or 0)
    payload = dict(payload)
    token, is_needed = payload.pop(_LIVE, (b"", False))
    if token and kept is not None and (live := kept(token, depth)) is not None:
        return live
    meta = dict(payload.pop("meta", None) or {})
    meta.setdefault("depth", depth)
    if "priority" in payload:
        payload["priority"] = int(payload["priority"])  # earlier versions stored the spider's value
    for name in ("callback", "errback"):
        if payload.get(name):
            payload[name] = instead_of(payload[name])
    request = request_of_fields({**payload, "url": url, "meta": meta}, spider, values)
    if is_needed:
        raise LostRequestError(request)
    return request


def without_transient(meta: MutableMapping[str, Any]) -> None:
    for name in _TRANSIENT_META:
        meta.pop(name, None)


def _packed_body(url: str, depth: int, payload: Payload, values: ValueCodec = PLAIN) -> bytes:
    try:
        body = values.pack([url, depth, payload])
    except Exception as error:
        fields = payload if isinstance(payload, dict) else {"priority": payload}
        unknown = ("request", f"holds a value that raises {type(error).__name__}", type(error).__name__)
        try:
            path, reason, kind = values.find_culprit(fields, "") or unknown
        except Exception:  # noqa: BLE001 - of the text of a key or of an error
            path, reason, kind = unknown
        raise RequestNotStorableError(url, path, f"{reason}; {REMEDY}", kind) from error
    if len(body) > BODY_BYTES_MAX:
        bound = f"at most {BODY_BYTES_MAX} are allowed"
        size = f"is {len(body)} bytes; {bound}: keep large data elsewhere, and its name in meta"
        raise RequestNotStorableError(url, WHOLE, size)
    return body


def _links_payload(links: Links, origin: LinkOrigin) -> Payload:
    if origin == NO_ORIGIN and not (links.callback or links.errback or links.cb_kwargs or links.meta):
        return links.priority or None
    origin = _bounded(origin)
    payload: dict[str, Any] = {}
    if links.callback_name:
        payload["callback"] = links.callback_name
    if links.errback_name:
        payload["errback"] = links.errback_name
    if links.cb_kwargs:
        payload["cb_kwargs"] = dict(links.cb_kwargs)
    if links.meta or payload:
        # Otherwise Scrapy would escape the canonical URL again, and fetch another one.
        payload["meta"] = {**(links.meta or {}), "verbatim_url": True}
        forget_origin(payload["meta"])
        record_origin(payload["meta"], origin)
    if payload and links.priority:
        payload["priority"] = links.priority
    # A queue may lower a URL's priority. Its redirects, and requests from its callback, keep the spider's.
    if payload or origin == NO_ORIGIN:
        return payload or links.priority or None
    return [links.priority, *(origin if origin.time_s else origin[:1])]


def forget_origin(meta: MutableMapping[str, Any]) -> None:
    """Remove the origin of a page from meta that was copied for its links."""
    meta.pop(PARENT, None)
    meta.pop(FOUND, None)


def record_origin(meta: MutableMapping[str, Any], origin: LinkOrigin) -> None:
    if page := _bounded(origin).page:
        meta[PARENT] = page
    if origin.time_s:
        meta[FOUND] = [origin.time_s, origin.address]


def _payload_of_request(request: Request, spider: Spider, priority: int, values: ValueCodec) -> dict[str, Any]:
    try:
        whole = fields_of_request(request, spider, values)
    except TypeError as error:
        raise RequestNotStorableError(request.url, "its class", f"is {type(request)!r}: {error}") from error
    except ValueError as error:
        raise _no_method(request, spider, values) from error
    return _payload_of(whole, request.url, priority)


def _payload_of(whole: dict[str, Any], url: str, priority: int) -> dict[str, Any]:
    meta = {key: value for key, value in whole.pop("meta").items() if key not in _TRANSIENT_META}
    whole.pop("url")
    whole["priority"] = priority
    plain = {"method": "GET", "encoding": "utf-8"}
    payload = {key: value for key, value in whole.items() if value and plain.get(key) != value}
    if "cookies" in payload:
        _check_cookies(url, payload["cookies"])
    if (odd := odd_name(payload.get("cb_kwargs"))) is not None:
        raise RequestNotStorableError(url, "cb_kwargs", f"has the key {odd!r}, which is not the name of an argument")
    # The URL as Scrapy has escaped it; escaping it again must not change the key.
    payload["meta"] = meta
    return payload


def _no_method(request: Request, spider: Spider, values: ValueCodec) -> RequestNotStorableError:
    """Return the error for a callback or errback that no message may name."""
    for path in ("callback", "errback"):
        function = getattr(request, path)
        if function is not None and not is_method_of(spider, function, values):
            break
    if getattr(function, "__self__", None) is spider and not values.may_call(function):
        return RequestNotStorableError(request.url, path, not_listed(function))
    return RequestNotStorableError(request.url, path, no_method(path, function))


def is_method_of(spider: Spider, function: Callable[..., Any], values: ValueCodec = PLAIN) -> bool:
    return bool(getattr(spider, getattr(function, "__name__", ""), None) == function) and values.may_call(function)


def not_listed(function: object) -> str:
    """Return the remedy for a method of an unlisted package, worded to follow its name."""
    return f"is {function!r}: BIGCRAWL_STORED_PACKAGES does not list {getattr(function, '__module__', 'its module')}"


def _check_cookies(url: str, cookies: Any) -> None:
    """Refuse cookies that Scrapy's middleware could not read at fetch time."""
    try:
        pairs = cookies.items() if isinstance(cookies, dict) else [(row["name"], row["value"]) for row in cookies]
    except (TypeError, KeyError):
        reason = f"is {cookies!r}: give it names and values, {{'name': 'value'}}, or a list of dicts that have both"
        raise RequestNotStorableError(url, "cookies", reason) from None
    for name, value in pairs:
        if not isinstance(value, str | bytes | int | float | None):
            raise RequestNotStorableError(url, f"cookies[{name!r}]", f"is {value!r}: it must be a string")


def _require_integer(request: Request, path: str, value: object) -> int:
    try:
        return whole_number(value)
    except ValueError as error:
        raise RequestNotStorableError(request.url, path, str(error)) from None
