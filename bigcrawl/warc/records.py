"""Converts exchanges to WARC/1.1 records.

Not kept, because Scrapy does not keep it or replay would break on it:

- Header names have Scrapy's case (``Etag``), and headers of one name are adjacent. Scrapy's default handler drops
  hop-by-hop response headers.
- The reason phrase is the registered one for the status, unless the exchange has one.
- ``Transfer-Encoding``, and a ``Content-Length`` that does not match the body, get the prefix ``X-Crawler-``, as in
  Common Crawl; the true length is added. If a body is not allowed (HEAD, 1xx, 204, 304), the length stays.
- The request line has the origin form, even for a proxy. ``Host`` and ``Content-Length``, which download handlers add
  late, are added. ``Authorization``, ``Proxy-Authorization``, and user and password of a URL are left out as secrets of
  the operator.
- HTTP/2 and later are written as HTTP/1.1, which readers parse; ``WARC-Protocol`` names the real protocol.
- Line breaks inside a header become spaces (RFC 9112 §5.2), so that no server can forge a record.

docs/file-formats.md has the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import time
from functools import lru_cache
from http.client import responses as reasons
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import quote

from isal import isal_zlib

from bigcrawl.exceptions import ContractError
from bigcrawl.warc.base32 import encode_sha1

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Truncation = Literal["length", "time", "disconnect", "unspecified"]

_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}
_KEPT_IN_URL = "".join(map(chr, range(0x21, 0x7F)))
_split_id = struct.Struct("8s4sx3sx3s12s").iter_unpack
_without_user = re.compile(r"(?<=://)[^/?#]*@").sub
_break_in_line = re.compile(rb"[\r\n]+[ \t]*").sub
_break_in_text = re.compile(r"[\r\n]+[ \t]*").sub
_SECRETS: Final = frozenset({b"authorization", b"proxy-authorization"})
_BODYLESS_STATUSES = frozenset({204, 304, *range(100, 200)})
# RFC 9110 §8.6: these send the length of an empty body.
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
BOOT_FIELD: Final = "bootId"  # in warcinfo
# Costs a quarter of zlib, and makes files 3 % larger.
_GZIP_LEVEL = 2
_GZIP_WBITS = 31
SAME_PAYLOAD: Final = b"http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_IDS_AT_ONCE: Final = 64
_unused_ids: list[bytes] = []
os.register_at_fork(after_in_child=_unused_ids.clear)  # else two processes would give the same


class Exchange(NamedTuple):
    """A request and its response, as sent over the wire; a tuple, because a dataclass takes twice as long to make.

    Attributes:
        request_headers: without those added late (``Host``, ``Content-Length``).
        reason: the reason phrase; None for the registered one.
        protocol: ``HTTP/1.1``, ``HTTP/1.0``, ``h2`` ...; None for HTTP/1.1.
        response_headers: in the order received, duplicates as separate pairs.
        response_body: after de-chunking, still content-encoded.
        ip: the server's address; None if unknown (or a proxy's).
        date_ms: when the capture began, since the epoch.
        truncated: why the body is incomplete, if it is.
        record_id: the id of the response's record; None to create one.
        notes: the fields of a metadata record about the fetch.
    """

    url: str
    method: str
    request_headers: Sequence[tuple[bytes, bytes]]
    request_body: bytes
    status: int
    response_headers: Sequence[tuple[bytes, bytes]]
    response_body: bytes
    date_ms: int
    reason: str | None = None
    protocol: str | None = None
    ip: str | None = None
    truncated: Truncation | None = None
    record_id: bytes | None = None
    notes: Mapping[str, str] | None = None


class Origin(NamedTuple):
    url: str
    date_ms: int
    record_id: bytes
    status: int = 200


class Note(NamedTuple):
    url: str
    refers_to: bytes
    date_ms: int
    fields: Mapping[str, str]


class Conversion(NamedTuple):
    """Another form of a stored response's body, such as the document after its scripts."""

    url: str
    refers_to: bytes
    date_ms: int
    content_type: str
    block: bytes


def new_record_id() -> bytes:
    """Return a UUID of version 4 (RFC 9562); many are made at once, six times faster than by ``uuid.uuid4``."""
    try:
        return _unused_ids.pop()
    except IndexError:
        digits = os.urandom(16 * _IDS_AT_ONCE).hex().encode()
        new, *others = [b"<urn:uuid:%b-%b-4%b-a%b-%b>" % parts for parts in _split_id(digits)]
        _unused_ids.extend(others)
        return new


def warcinfo_record(record_id: bytes, filename: str, date_ms: int, info: Mapping[str, str]) -> bytes:
    head = b"WARC-Type: warcinfo\r\nWARC-Record-ID: %b\r\nWARC-Date: %b\r\nWARC-Filename: %b\r\n%b" % (
        record_id,
        _date_text(date_ms),
        _one_line(filename),
        b"Content-Type: application/warc-fields\r\n",
    )
    return _encode_record(head, _warc_fields({"format": "WARC File Format 1.1", **info}))


def payload_sha1(exchange: Exchange) -> bytes:
    return hashlib.sha1(exchange.response_body, usedforsecurity=False).digest()


def exchange_records(
    exchange: Exchange,
    warcinfo_id: bytes,
    new_id: Callable[[], bytes] = new_record_id,
    *,
    payload: bytes | None = None,
    origin: Origin | None = None,
) -> list[bytes]:
    """Return the records of an exchange in order: response or ``revisit``, request, and metadata if any.

    `payload` is the exchange's `payload_sha1`, if known; `origin` is an earlier record with that payload.
    """
    response_id = exchange.record_id or new_id()
    target = _target_uri(exchange.url)
    capture = _capture_lines(target, exchange.date_ms, warcinfo_id)
    common = capture + _connection_lines(exchange)
    payload = payload_sha1(exchange) if payload is None else payload
    records = [
        _response_record(exchange, response_id, common, payload, origin),
        _request_record(exchange, target, new_id(), response_id, common),
    ]
    if exchange.notes:
        records.append(_metadata_record(new_id(), capture, response_id, exchange.notes))
    return records


def related_record(item: Note | Conversion, warcinfo_id: bytes, new_id: Callable[[], bytes] = new_record_id) -> bytes:
    capture = _capture_lines(_target_uri(item.url), item.date_ms, warcinfo_id)
    if isinstance(item, Note):
        return _metadata_record(new_id(), capture, item.refers_to, item.fields)
    head = b"WARC-Type: conversion\r\nWARC-Record-ID: %b\r\n%bWARC-Refers-To: %b\r\nContent-Type: %b\r\n" % (
        new_id(),
        capture,
        item.refers_to,
        _one_line(item.content_type),
    )
    return _encode_record(head, b"", item.block, hashlib.sha1(item.block, usedforsecurity=False).digest())


def _metadata_record(record_id: bytes, capture: bytes, refers_to: bytes, fields: Mapping[str, str]) -> bytes:
    head = b"WARC-Type: metadata\r\nWARC-Record-ID: %b\r\n%bWARC-Refers-To: %b\r\n%b" % (
        record_id,
        capture,
        refers_to,
        b"Content-Type: application/warc-fields\r\n",
    )
    return _encode_record(head, _warc_fields(fields))


def _response_record(
    exchange: Exchange, record_id: bytes, common: bytes, payload: bytes, origin: Origin | None
) -> bytes:
    head = b"WARC-Type: %b\r\nWARC-Record-ID: %b\r\n%bContent-Type: application/http; msgtype=response\r\n" % (
        b"response" if origin is None else b"revisit",
        record_id,
        common,
    )
    if origin is not None:
        head += b"WARC-Profile: %b\r\nWARC-Refers-To: %b\r\nWARC-Refers-To-Target-URI: %b\r\n" % (
            SAME_PAYLOAD,
            origin.record_id,
            _target_uri(origin.url),
        )
        head += b"WARC-Refers-To-Date: %b\r\nWARC-Truncated: length\r\n" % _date_text(origin.date_ms)
    elif exchange.truncated is not None:
        head += b"WARC-Truncated: %b\r\n" % exchange.truncated.encode()
    reason = reasons.get(exchange.status, "") if exchange.reason is None else exchange.reason
    status_line = b"%b %d %b" % (_http_version(exchange.protocol), exchange.status, _encode_text(reason))
    http_head = _http_head([status_line, *_response_headers(exchange)])
    return _encode_record(head, http_head, exchange.response_body if origin is None else b"", payload)


def _request_record(exchange: Exchange, target: bytes, record_id: bytes, response_id: bytes, common: bytes) -> bytes:
    head = b"WARC-Type: request\r\nWARC-Record-ID: %b\r\n%bWARC-Concurrent-To: %b\r\n%b" % (
        record_id,
        common,
        response_id,
        b"Content-Type: application/http; msgtype=request\r\n",
    )
    host, path = _host_and_path(target)
    request_line = b"%b %b %b" % (_encode_text(exchange.method), path, _http_version(exchange.protocol))
    http_head = _http_head([request_line, *_request_headers(exchange, host)])
    body = exchange.request_body
    return _encode_record(head, http_head, body, hashlib.sha1(body, usedforsecurity=False).digest() if body else None)


def _encode_record(head: bytes, http_head: bytes, body: bytes = b"", payload: bytes | None = None) -> bytes:
    """Return a record. Texts in `head` that may have line breaks have come through `_one_line`."""
    digest = hashlib.sha1(http_head, usedforsecurity=False)
    digest.update(body)
    return b"".join(
        (
            b"WARC/1.1\r\n",
            head,
            b"WARC-Block-Digest: sha1:",
            encode_sha1(digest.digest()),
            b"" if payload is None else b"\r\nWARC-Payload-Digest: sha1:" + encode_sha1(payload),
            b"\r\nContent-Length: %d\r\n\r\n" % (len(http_head) + len(body)),
            http_head,
            body,
            b"\r\n\r\n",
        )
    )


def _capture_lines(target: bytes, date_ms: int, warcinfo_id: bytes) -> bytes:
    return b"WARC-Target-URI: %b\r\nWARC-Date: %b\r\nWARC-Warcinfo-ID: %b\r\n" % (
        target,
        _date_text(date_ms),
        warcinfo_id,
    )


def _connection_lines(exchange: Exchange) -> bytes:
    ip, protocol = exchange.ip, exchange.protocol
    lines = b"" if ip is None else b"WARC-IP-Address: %b\r\n" % _one_line(ip)
    if protocol is not None and not protocol.startswith("HTTP/1."):
        lines += b"WARC-Protocol: %b\r\n" % _one_line(protocol.lower())
    return lines


def _response_headers(exchange: Exchange) -> list[bytes]:
    has_body = exchange.method != "HEAD" and exchange.status not in _BODYLESS_STATUSES
    length = b"%d" % len(exchange.response_body)
    lines = []
    is_length_written = False
    for name, value in exchange.response_headers:
        match name.lower():
            case b"transfer-encoding":
                lines.append(b"X-Crawler-Transfer-Encoding: " + value)
            case b"content-length" if has_body and value.strip() != length:
                lines.append(b"X-Crawler-Content-Length: " + value)
                if not is_length_written:
                    lines.append(b"Content-Length: " + length)
                    is_length_written = True
            case _:
                lines.append(name + b": " + value)
    return lines


def _request_headers(exchange: Exchange, host: bytes) -> list[bytes]:
    lines = []
    names = set()
    for name, value in exchange.request_headers:
        lower = name.lower()
        if lower not in _SECRETS:
            names.add(lower)
            lines.append(name + b": " + value)
    if b"host" not in names:
        lines.insert(0, b"Host: " + host)
    is_length_due = bool(exchange.request_body) or exchange.method in _METHODS_WITH_BODY
    if is_length_due and not names & {b"content-length", b"transfer-encoding"}:
        lines.append(b"Content-Length: %d" % len(exchange.request_body))
    return lines


def _http_head(lines: list[bytes]) -> bytes:
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1:
        head = b"\r\n".join([_break_in_line(b" ", line) for line in lines])
    return head + b"\r\n\r\n"


def _warc_fields(fields: Mapping[str, str]) -> bytes:
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if not "".join(lines).isprintable():
        lines = [_break_in_text(" ", line) for line in lines]
    return _encode_text("\r\n".join(lines) + "\r\n")


def _one_line(text: str) -> bytes:
    return _encode_text(text if text.isprintable() else _break_in_text(" ", text))


def _target_uri(url: str) -> bytes:
    url = url.partition("#")[0]
    if "@" in url:
        url = _without_user("", url, 1)
    if not url.isascii() or not url.isprintable() or " " in url:
        url = quote(url, safe=_KEPT_IN_URL)
    return url.encode("ascii")


def _host_and_path(target: bytes) -> tuple[bytes, bytes]:
    scheme, separator, rest = target.partition(b"://")
    if not separator or b":" in scheme:
        raise ContractError(f"{target!r} is not absolute")
    host, slash, path = rest.partition(b"/")
    if b"?" in host:
        host, slash, path = rest.partition(b"?")
        path = slash + path
    return host.removesuffix(_DEFAULT_PORTS.get(scheme.lower(), b"")), b"/" + path


def _http_version(protocol: str | None) -> bytes:
    return b"HTTP/1.0" if protocol == "HTTP/1.0" else b"HTTP/1.1"


def _date_text(date_ms: int) -> bytes:
    seconds, ms = divmod(date_ms, 1000)
    return b"%s.%03dZ" % (_to_seconds(seconds), ms)


@lru_cache(16)
def _to_seconds(seconds: int) -> bytes:
    """Return the date to the second, cached, because a second has many pages."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode()


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def pack_member(record: bytes) -> bytes:
    """Return a record as a gzip member."""
    return isal_zlib.compress(record, _GZIP_LEVEL, _GZIP_WBITS)
