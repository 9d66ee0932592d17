"""Fetches by GET from servers whose answers libcurl refuses: one request a connection, read by `OddAnswer`."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

from OpenSSL.crypto import FILETYPE_ASN1
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadFailedError
from twisted.internet.ssl import Certificate

from bigcrawl.downloads.odd_answers import OddAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from urllib.parse import ParseResult

    from bigcrawl.downloads.response_builder import ResponseBuilder

_PORTS: Final = {"http": 80, "https": 443}
_READ_BYTES: Final = 64 << 10


async def ask(
    url: ParseResult, target: str, address: str, lines: Sequence[bytes], builder: ResponseBuilder
) -> tuple[str, Certificate | None]:
    """Send a request and give the answer to the builder; return what is missing of its body, and the certificate.

    Args:
        url: of the request.
        target: path and query, as sent.
        address: what is connected to.
        lines: the header lines, as libcurl takes them: an empty value is a semicolon, none is a colon.
        builder: takes the answer.

    Raises:
        DownloadFailedError: no connection, or no answer.
        DownloadConnectionRefusedError: no connection.
    """
    sent = [b"GET %b HTTP/1.1" % target.encode(), *_sent(lines)]
    if not any(line.lower().startswith(b"host:") for line in sent):
        sent.insert(1, b"Host: " + _host(url))
    try:
        async with _connected(url, address) as (reader, writer):
            if not builder.may_send(address):
                return "", None
            writer.write(b"\r\n".join((*sent, b"Connection: close", b"", b"")))
            answer = OddAnswer(builder)
            while data := await _read(reader, builder):
                if answer.feed(data):
                    break
            else:
                answer.end()
            return answer.loss, _certificate(writer)
    except ConnectionRefusedError as error:
        raise DownloadConnectionRefusedError(str(error)) from error
    except (OSError, ValueError) as error:  # the latter for a name that TLS cannot have
        raise DownloadFailedError(f"{url.geturl()}: {error}") from error


async def _read(reader: asyncio.StreamReader, builder: ResponseBuilder) -> bytes:
    """Read on. A connection that breaks off has ended; before a head, it is an error."""
    try:
        return await reader.read(_READ_BYTES)
    except OSError:
        if builder.is_head_whole:
            return b""
        raise


def _sent(lines: Sequence[bytes]) -> list[bytes]:
    """Return header lines as they are sent."""
    return [line[:-1] + b":" if b":" not in line else line for line in lines if not line.endswith(b":")]


def _host(url: ParseResult) -> bytes:
    """Return the Host header, without the port that is the scheme's own."""
    return url.netloc.removesuffix(f":{_PORTS[url.scheme]}").encode()


@asynccontextmanager
async def _connected(
    url: ParseResult, address: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    is_secure = url.scheme == "https"
    name = (url.hostname or "").rstrip(".") if is_secure else None
    reader, writer = await asyncio.open_connection(
        address, url.port or _PORTS[url.scheme], ssl=_unverified() if is_secure else None, server_hostname=name
    )
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


class _Unverified(ssl.SSLContext):
    """The settings of libcurl's connections: certificates are not verified."""

    def __init__(self, _protocol: int) -> None:
        super().__init__()
        self.check_hostname = False
        self.verify_mode = ssl.CERT_NONE


@cache
def _unverified() -> ssl.SSLContext:
    return _Unverified(ssl.PROTOCOL_TLS_CLIENT)


def _certificate(writer: asyncio.StreamWriter) -> Certificate | None:
    wrapped = writer.get_extra_info("ssl_object")
    return Certificate.load(wrapped.getpeercert(binary_form=True), FILETYPE_ASN1) if wrapped else None
