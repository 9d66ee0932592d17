"""Converts exchanges to WARC/1.1 records: pure functions from values to bytes.

What is kept exactly (the fidelity contract):

- the response body as received after de-chunking, content encoding untouched;
- the request body;
- names, values, and number of all headers, in the order in which Scrapy keeps them;
- URL (without its fragment), method, status, the server's address, and the time to the millisecond.

What is not, because Scrapy does not keep it or because replay would break on it:

- Header names have Scrapy's case (``Etag``), and headers of one name stand together. Scrapy's default handler drops
  hop-by-hop response headers (``Connection``, ``Transfer-Encoding``) before other code can see them.
- The reason phrase is the registered one for the status, or empty, unless the exchange has one.
- Chunking is removed, so ``Transfer-Encoding`` would be wrong: it is renamed ``X-Crawler-Transfer-Encoding``. A
  ``Content-Length`` that does not match the body (truncated, or wrong from the start) is renamed
  ``X-Crawler-Content-Length``, and the true one takes its place. If a body is not allowed (HEAD, 1xx, 204, 304), it
  stays. These are the names Common Crawl uses.
- The request line has the origin form, even if a proxy was sent the absolute one. ``Host`` and ``Content-Length``,
  which download handlers add late, are added. ``Proxy-Authorization`` is left out: it is the operator's secret and not
  the server's.
- HTTP/2 and later messages are written as HTTP/1.1, the only version that readers parse; ``WARC-Protocol`` names the
  real one.
- Line breaks inside a header become spaces (RFC 9112 §5.2), so that no server can forge a record.

Payload and block digests cover the bytes in the record. A request names its response in ``WARC-Concurrent-To``. The
response stands first, so that a tail cut between the two keeps the page.

A response whose payload is in an earlier record may be a ``revisit`` instead: the headers without the body, with the
digest of the payload, and target, date and id of that record (WARC/1.1 §6.7, identical-payload-digest).
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from functools import lru_cache
from http.client import responses as reasons
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import quote

from bigcrawl.exceptions import ContractError
from bigcrawl.warc.base32 import encode_sha1

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Truncation = Literal["length", "time", "disconnect", "unspecified"]

_VERSION_LINE = b"WARC/1.1"
_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}
_UNSAFE_IN_URL = re.compile(r"[^\x21-\x7e]")
# Everything printable: only blanks, controls and non-ASCII characters must be escaped, nothing else may change.
_KEPT_IN_URL = "".join(map(chr, range(0x21, 0x7F)))
# Scheme, authority without user and password, and the rest, of the result of `_target`.
_split_target = re.compile(rb"([^:]*)://(?:[^/?]*@)?([^/?]*)(.*)", re.DOTALL).fullmatch
_BODYLESS_STATUSES = frozenset({204, 304, *range(100, 200)})
# RFC 9110 §8.6: a client sends the length of an empty body if the method expects one.
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
SAME_PAYLOAD: Final = b"http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class Exchange(NamedTuple):
    """A request and its response, as sent over the wire.

    A tuple, because there is one a page: a frozen dataclass takes more than twice as long to make.

    Attributes:
        url: absolute http or https URL; a fragment is ignored.
        request_headers: without those that a download handler adds late (``Host``, ``Content-Length``).
        reason: the reason phrase; None: the registered one.
        protocol: ``HTTP/1.1``, ``HTTP/1.0``, ``h2`` ...; None: HTTP/1.1.
        response_headers: in the order received, duplicates as separate pairs.
        response_body: after de-chunking, still content-encoded.
        ip: the server's address; None if unknown (or a proxy's).
        date_ms: when the capture began, since the epoch.
        truncated: why the body is incomplete; None if it is complete.
        record_id: of the response's record; None to create one.
        notes: what is known of the fetch, for a metadata record beside the two; None: there is none.
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
    """The record of a response whose payload others have too.

    Attributes:
        url: its target; a fragment is ignored.
        date_ms: its date, since the epoch.
        record_id: its ``WARC-Record-ID``.
        status: of the response.
    """

    url: str
    date_ms: int
    record_id: bytes
    status: int = 200


class Note(NamedTuple):
    """A fact about a page that is already stored.

    Attributes:
        url: the page's.
        refers_to: the record id of its response.
        date_ms: when it was found.
        fields: names and values; see docs/file-formats.md.
    """

    url: str
    refers_to: bytes
    date_ms: int
    fields: Mapping[str, str]


def new_record_id() -> bytes:
    """Return a new value for ``WARC-Record-ID``: a UUID (RFC 9562, version 4) of 120 random bits.

    Built here, because ``uuid.uuid4`` takes three times as long, and a page needs two.
    """
    digits = os.urandom(16).hex()
    uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    return f"<urn:uuid:{uuid}>".encode()


def warcinfo_record(record_id: bytes, filename: str, date_ms: int, info: Mapping[str, str]) -> bytes:
    """Return the record that opens a file. `info` becomes its ``application/warc-fields``, in order."""
    fields = {"format": "WARC File Format 1.1", **info}
    block = _lines([_text(f"{name}: {value}") for name, value in fields.items()])
    head = [
        b"WARC-Type: warcinfo",
        b"WARC-Record-ID: " + record_id,
        b"WARC-Date: " + _date(date_ms),
        b"WARC-Filename: " + _text(filename),
        b"Content-Type: application/warc-fields",
    ]
    return _record(head, block, b"")


def payload_sha1(exchange: Exchange) -> bytes:
    """Return the SHA-1 of the response's body, as ``WARC-Payload-Digest`` has it."""
    return hashlib.sha1(exchange.response_body, usedforsecurity=False).digest()


def exchange_records(
    exchange: Exchange,
    warcinfo_id: bytes,
    new_id: Callable[[], bytes] = new_record_id,
    *,
    payload: bytes | None = None,
    origin: Origin | None = None,
) -> list[bytes]:
    """Return the exchange as records in the order in which to write them: response, request, and metadata if any.

    Args:
        exchange: what was sent.
        warcinfo_id: of the file.
        new_id: makes record ids.
        payload: the result of `payload_sha1`, if it is known already.
        origin: the record that has the same payload. If there is one, the first record is a ``revisit`` with the
            headers of the response and no body; its target, date and id are those of this exchange.

    Cost: two SHA-1 passes over the body (for the block and payload digests), and one copy of it; one pass and no copy
    if there is an origin.
    """
    response_id = exchange.record_id or new_id()
    target = _target(exchange.url)
    common = [
        b"WARC-Target-URI: " + target,
        b"WARC-Date: " + _date(exchange.date_ms),
        b"WARC-Warcinfo-ID: " + warcinfo_id,
    ]
    if exchange.ip is not None:
        common.append(b"WARC-IP-Address: " + _text(exchange.ip))
    if exchange.protocol is not None and not exchange.protocol.startswith("HTTP/1."):
        common.append(b"WARC-Protocol: " + _text(exchange.protocol.lower()))
    payload = payload_sha1(exchange) if payload is None else payload
    response = _response(exchange, response_id, common, payload, origin)
    records = [response, _request(exchange, target, new_id(), response_id, common)]
    if exchange.notes:
        note = Note(exchange.url, response_id, exchange.date_ms, exchange.notes)
        records.append(note_record(note, warcinfo_id, new_id))
    return records


def note_record(note: Note, warcinfo_id: bytes, new_id: Callable[[], bytes] = new_record_id) -> bytes:
    """Return a note as a metadata record, with its fields as ``application/warc-fields``."""
    head = [
        b"WARC-Type: metadata",
        b"WARC-Record-ID: " + new_id(),
        b"WARC-Target-URI: " + _target(note.url),
        b"WARC-Date: " + _date(note.date_ms),
        b"WARC-Warcinfo-ID: " + warcinfo_id,
        b"WARC-Refers-To: " + note.refers_to,
        b"Content-Type: application/warc-fields",
    ]
    block = _lines([_text(f"{name}: {value}") for name, value in note.fields.items()])
    return _record(head, block, b"")


def _response(
    exchange: Exchange, record_id: bytes, common: list[bytes], payload: bytes, origin: Origin | None
) -> bytes:
    head = [
        b"WARC-Type: response" if origin is None else b"WARC-Type: revisit",
        b"WARC-Record-ID: " + record_id,
        *common,
        b"Content-Type: application/http; msgtype=response",
    ]
    if origin is not None:
        head += [
            b"WARC-Profile: " + SAME_PAYLOAD,
            b"WARC-Refers-To: " + origin.record_id,
            b"WARC-Refers-To-Target-URI: " + _target(origin.url),
            b"WARC-Refers-To-Date: " + _date(origin.date_ms),
            b"WARC-Truncated: length",
        ]
    elif exchange.truncated is not None:
        head.append(b"WARC-Truncated: " + exchange.truncated.encode())
    reason = reasons.get(exchange.status, "") if exchange.reason is None else exchange.reason
    status_line = b"%s %d %s" % (_http_version(exchange.protocol), exchange.status, _text(reason))
    http_head = _lines([status_line, *_response_headers(exchange)]) + b"\r\n"
    return _record(head, http_head, exchange.response_body if origin is None else b"", payload)


def _request(exchange: Exchange, target: bytes, record_id: bytes, response_id: bytes, common: list[bytes]) -> bytes:
    head = [
        b"WARC-Type: request",
        b"WARC-Record-ID: " + record_id,
        *common,
        b"WARC-Concurrent-To: " + response_id,
        b"Content-Type: application/http; msgtype=request",
    ]
    host, path = _host_and_path(target)
    version = _http_version(exchange.protocol)
    request_line = b"%s %s %s" % (_text(exchange.method), path, version)
    http_head = _lines([request_line, *_request_headers(exchange, host)]) + b"\r\n"
    body = exchange.request_body
    return _record(head, http_head, body, hashlib.sha1(body, usedforsecurity=False).digest() if body else None)


def _record(head: list[bytes], http_head: bytes, body: bytes, payload: bytes | None = None) -> bytes:
    """Complete a record. Its block is `http_head` + `body`. `payload` is the SHA-1 of the payload, if it has one."""
    digest = hashlib.sha1(http_head, usedforsecurity=False)
    digest.update(body)
    head.append(b"WARC-Block-Digest: sha1:" + encode_sha1(digest.digest()))
    if payload is not None:
        head.append(b"WARC-Payload-Digest: sha1:" + encode_sha1(payload))
    head.append(b"Content-Length: %d" % (len(http_head) + len(body)))
    return b"".join((_lines([_VERSION_LINE, *head]), b"\r\n", http_head, body, b"\r\n\r\n"))


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
        if lower != b"proxy-authorization":
            names.add(lower)
            lines.append(name + b": " + value)
    if b"host" not in names:
        lines.insert(0, b"Host: " + host)
    is_length_due = bool(exchange.request_body) or exchange.method in _METHODS_WITH_BODY
    if is_length_due and not names & {b"content-length", b"transfer-encoding"}:
        lines.append(b"Content-Length: %d" % len(exchange.request_body))
    return lines


def _lines(lines: list[bytes]) -> bytes:
    """Join the lines with line ends. Line breaks inside a line become spaces."""
    block = b"\r\n".join(lines) + b"\r\n"
    if block.count(b"\n") != len(lines) or block.count(b"\r") != len(lines):
        clean = (re.sub(rb"[\r\n]+[ \t]*", b" ", line) for line in lines)
        block = b"\r\n".join(clean) + b"\r\n"
    return block


def _target(url: str) -> bytes:
    url = url.partition("#")[0]
    if _UNSAFE_IN_URL.search(url):
        url = quote(url, safe=_KEPT_IN_URL)
    return url.encode("ascii")


def _host_and_path(target: bytes) -> tuple[bytes, bytes]:
    """Return the ``Host`` header and the path for the request line."""
    parts = _split_target(target)
    if parts is None:
        raise ContractError(f"{target!r} is not absolute")
    scheme, host, path = parts.groups()
    host = host.removesuffix(_DEFAULT_PORTS.get(scheme.lower(), b""))
    return host, path if path.startswith(b"/") else b"/" + path


def _http_version(protocol: str | None) -> bytes:
    return b"HTTP/1.0" if protocol == "HTTP/1.0" else b"HTTP/1.1"


def _date(date_ms: int) -> bytes:
    seconds, ms = divmod(date_ms, 1000)
    return b"%s.%03dZ" % (_to_seconds(seconds), ms)


@lru_cache(16)
def _to_seconds(seconds: int) -> bytes:
    """Return the date up to its seconds; cached, because many pages are captured in each second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode()


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
