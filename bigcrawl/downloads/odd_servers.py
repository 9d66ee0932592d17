"""Fetches by GET from servers whose answers libcurl or Twisted refuses: one request a connection, read by `OddAnswer`.

A request may go through an HTTP proxy: for http it then names the whole URL, for https it uses a tunnel. A proxy's
answer to CONNECT is read as leniently as any other answer.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from OpenSSL.crypto import FILETYPE_ASN1
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadFailedError
from twisted.internet.ssl import Certificate

from bigcrawl.downloads.odd_answers import OddAnswer, find_status
from bigcrawl.downloads.proxies import PORTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from urllib.parse import ParseResult

    from bigcrawl.downloads.proxies import Proxy
    from bigcrawl.downloads.response_builder import ResponseBuilder

_READ_BYTES: Final = 64 << 10
_HEAD_BYTES_MAX: Final = 64 << 10


async def exchange(
    url: ParseResult,
    target: str,
    address: str,
    lines: Sequence[bytes],
    builder: ResponseBuilder,
    proxy: Proxy | None = None,
) -> tuple[str, Certificate | None]:
    """Send a request and pass the answer to the builder; return the body's defect, if any, and the certificate.

    As in libcurl, the line `Name;` sends a header with an empty value, and `Name:` none. `target` is the path with the
    query. Raises Scrapy's errors if there is no answer.
    """
    is_whole = proxy is not None and url.scheme == "http"  # whether the request names the whole URL
    written = f"http://{url.netloc.rpartition('@')[2]}{target}" if is_whole else target
    sent = [b"GET %b HTTP/1.1" % written.encode(), *_header_lines(lines), *(proxy.lines if proxy and is_whole else ())]
    if not any(line.lower().startswith(b"host:") for line in sent):
        sent.insert(1, b"Host: " + _host_header(url))
    try:
        async with _open_connection(url, address, proxy) as (reader, writer):
            if not builder.may_send(address):
                return "", None
            writer.write(b"\r\n".join((*sent, b"Connection: close", b"", b"")))
            answer = OddAnswer(builder)
            while data := await _read_some(reader, builder):
                if answer.feed(data):
                    break
            else:
                answer.end_of_connection()
            return answer.loss, _certificate_of(writer)
    except ConnectionRefusedError as error:
        raise DownloadConnectionRefusedError(str(error)) from error
    except (OSError, ValueError) as error:  # ValueError: the name is invalid in TLS
        raise DownloadFailedError(f"{url.geturl()}: {error}") from error


async def _read_some(reader: asyncio.StreamReader, builder: ResponseBuilder) -> bytes:
    """Read bytes; once the head is complete, a broken connection counts as the answer's end."""
    try:
        return await reader.read(_READ_BYTES)
    except OSError:
        if builder.is_head_whole:
            return b""
        raise


def _header_lines(lines: Sequence[bytes]) -> list[bytes]:
    return [line[:-1] + b":" if b":" not in line else line for line in lines if not line.endswith(b":")]


def _host_header(url: ParseResult) -> bytes:
    return url.netloc.removesuffix(f":{PORTS[url.scheme]}").encode()


@asynccontextmanager
async def _open_connection(
    url: ParseResult, address: str, proxy: Proxy | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    port = url.port or PORTS[url.scheme]
    tls: dict[str, Any] = {}
    if url.scheme == "https":
        tls = {"ssl": _unverified_context(), "server_hostname": (url.hostname or "").rstrip(".")}
    if proxy is None:
        reader, writer = await asyncio.open_connection(address, port, **tls)
    else:
        reader, writer = await asyncio.open_connection(address, proxy.port)
    try:
        if proxy is not None and tls:
            await _open_tunnel(reader, writer, b"%b:%d" % ((url.hostname or "").encode(), port), proxy)
            await writer.start_tls(tls["ssl"], server_hostname=tls["server_hostname"])
        yield reader, writer
    finally:
        writer.transport.abort()


async def _open_tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to: bytes, proxy: Proxy) -> None:
    """Ask a proxy for a tunnel; its answer has no body (RFC 9110, section 9.3.6). Raises DownloadFailedError."""
    to = b"[%b]%b" % (to[: to.rindex(b":")], to[to.rindex(b":") :]) if to.count(b":") > 1 else to
    writer.write(b"\r\n".join((b"CONNECT %b HTTP/1.1" % to, b"Host: " + to, *proxy.lines, b"", b"")))
    status = 0
    while not 200 <= status < 300:
        head = await _read_head(reader)
        found = find_status(head)
        status = found or 0
        if not 100 <= status < 300:
            raise DownloadFailedError(f"the proxy {proxy.host} refused a tunnel to {to.decode()}: {head[:40]!r}")


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Return the next head, without the empty lines before it. Raises DownloadFailedError if none comes."""
    head = bytearray()
    while len(head) < _HEAD_BYTES_MAX:
        line = await reader.readline()
        if line.strip(b"\r\n"):
            head += line
        elif head or not line:
            break
    if not head:
        raise DownloadFailedError("the proxy closed the connection before an answer")
    return bytes(head)


class _UnverifiedContext(ssl.SSLContext):
    """A TLS context that does not verify certificates, as on libcurl's connections."""

    def __init__(self, _protocol: int) -> None:
        super().__init__()
        self.check_hostname = False
        self.verify_mode = ssl.CERT_NONE


@cache
def _unverified_context() -> ssl.SSLContext:
    return _UnverifiedContext(ssl.PROTOCOL_TLS_CLIENT)


def _certificate_of(writer: asyncio.StreamWriter) -> Certificate | None:
    wrapped = writer.get_extra_info("ssl_object")
    return Certificate.load(wrapped.getpeercert(binary_form=True), FILETYPE_ASN1) if wrapped else None
