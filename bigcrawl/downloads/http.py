"""The download handler for http and https: aiohttp underneath, Scrapy's rules above.

Scrapy's default handler, on Twisted, takes three times the CPU of this one. What a handler owes to a project
is kept: `headers_received` and `bytes_received` with StopDownload, DOWNLOAD_MAXSIZE and _WARNSIZE, data loss,
TLS settings, and Scrapy's own exceptions. Requests through a proxy or from an address of their own
(`proxy`, `bindaddress` in their meta) go to Scrapy's default handler: few crawls have them, and it does them
well.

Connections stay open for a host's next request and are limited by what the process may open; who has a
longer delay than servers wait gets a new one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import yarl
from scrapy import signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.ssl import _make_ssl_context
from twisted.internet.ssl import Certificate
from twisted.python.failure import Failure

from bigcrawl.downloads.connections import Connector
from bigcrawl.downloads.signalling import Signalling

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

_SKIPPED_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_PROXY_AUTHORIZATION: Final = b"Proxy-Authorization"


class _Answer(aiohttp.ClientResponse):
    """An answer that knows whom it came from even when its connection is gone already."""

    connector: Connector
    peer: str = ""
    certificate: bytes | None = None

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        transport = connection.transport
        peername = transport.get_extra_info("peername")
        self.peer = peername[0] if peername else ""
        if self.connector.is_crowded:
            connection.protocol.force_close()  # when the answer has been read
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.certificate = tls.getpeercert(binary_form=True)
        return await super().start(connection)


class HttpDownloadHandler:
    """See the module; a `DownloadHandlerProtocol`."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._signalling = Signalling(crawler)
        self._maxsize = settings.getint("DOWNLOAD_MAXSIZE")
        self._warnsize = settings.getint("DOWNLOAD_WARNSIZE")
        self._fails_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._timeout_s = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._has_warned_of_dataloss = False
        self._scrapys: HTTP11DownloadHandler | None = None
        connector = Connector(crawler, ssl=_make_ssl_context(settings))
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            response_class=type("_AnswerHere", (_Answer,), {"connector": connector}),
            skip_auto_headers=_SKIPPED_HEADERS,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            max_line_size=1 << 16,
            max_field_size=1 << 16,
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        if self._scrapys is not None:
            await self._scrapys.close()

    async def download_request(self, request: Request) -> Response:
        """Download; raises Scrapy's download errors and StopDownload."""
        meta = request.meta
        if meta.get("proxy") or meta.get("bindaddress"):
            return await self._through_scrapy(request)
        limit_s = meta.get("download_timeout", self._timeout_s)
        try:
            async with asyncio.timeout(limit_s or None) as limit:
                return await self._exchange(request)
        except TimeoutError as error:
            if limit.expired():
                raise DownloadTimeoutError(f"Getting {request.url} took longer than {limit_s} seconds.") from error
            raise DownloadFailedError(str(error)) from error
        except (aiohttp.InvalidUrlClientError, aiohttp.NonHttpUrlClientError) as error:
            raise UnsupportedURLSchemeError(str(error)) from error
        except aiohttp.ClientConnectorDNSError as error:
            raise CannotResolveHostError(str(error)) from error
        except aiohttp.ClientConnectorError as error:
            raise DownloadConnectionRefusedError(str(error)) from error
        except (aiohttp.ClientError, ValueError, ConnectionError) as error:
            raise DownloadFailedError(str(error)) from error

    async def _through_scrapy(self, request: Request) -> Response:
        if self._scrapys is None:
            self._scrapys = build_from_crawler(HTTP11DownloadHandler, self._crawler)
        return await self._scrapys.download_request(request)

    async def _exchange(self, request: Request) -> Response:
        started = monotonic()
        # As it is: the string that was canonical is the string that is sent.
        url = yarl.URL(request.url, encoded=True)
        answer = await self._session.request(
            request.method, url, headers=_header_lines(request), data=request.body or None, allow_redirects=False
        )
        try:
            request.meta["download_latency"] = monotonic() - started
            return await self._receive(request, answer)  # type: ignore[arg-type]
        finally:
            # Nothing is left to read of an answer that was read to its end: then the connection is kept.
            answer.close()

    async def _receive(self, request: Request, answer: _Answer) -> Response:
        headers = _headers(answer.raw_headers)
        expected = answer.content_length
        limit = request.meta.get("download_maxsize", self._maxsize)
        warn_at = request.meta.get("download_warnsize", self._warnsize)
        if expected and limit and expected > limit:
            raise DownloadCancelledError(_too_large("Expected to receive", expected, limit, request))
        if expected and warn_at and expected > warn_at:
            logger.warning(_too_large("Expected to receive", expected, warn_at, request, "warn"))
            warn_at = 0
        stop = self._stopped(signals.headers_received, request, headers=headers, body_length=expected)
        chunks: list[bytes] = []
        flags: list[str] = []
        if stop is None:
            try:
                stop = await self._read(request, answer, chunks, limit, warn_at)
            except aiohttp.ClientPayloadError as error:
                flags.append(self._dataloss(request, error))
        return _response(request, answer, headers, b"".join(chunks), flags, stop)

    async def _read(
        self, request: Request, answer: _Answer, chunks: list[bytes], limit: int, warn_at: int
    ) -> StopDownload | None:
        """Gather the body; returns what a receiver of `bytes_received` stopped it with."""
        content = answer.content
        is_heard = self._signalling.is_heard(signals.bytes_received)
        size = 0
        while chunk := await content.readany():
            chunks.append(chunk)
            size += len(chunk)
            if is_heard and (stop := self._stopped(signals.bytes_received, request, data=chunk)):
                return stop
            if limit and size > limit:
                raise DownloadCancelledError(_too_large("Received", size, limit, request))
            if warn_at and size > warn_at:
                logger.warning(_too_large("Received", size, warn_at, request, "warn"))
                warn_at = 0
        return None

    def _stopped(self, signal: object, request: Request, **fields: Any) -> StopDownload | None:
        heard = self._signalling.send(signal, request=request, spider=self._crawler.spider, **fields)
        for _, result in heard:
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                return result.value
        return None

    def _dataloss(self, request: Request, error: aiohttp.ClientPayloadError) -> str:
        """The flag of a response that is not whole; raises where such a one counts as failed."""
        if not request.meta.get("download_fail_on_dataloss", self._fails_on_dataloss):
            return "dataloss"
        if not self._has_warned_of_dataloss:
            self._has_warned_of_dataloss = True
            logger.warning(
                "Got data loss in %(url)s. To process broken responses set DOWNLOAD_FAIL_ON_DATALOSS = False "
                "(said once)",
                {"url": request.url},
            )
        raise ResponseDataLossError(str(error)) from error


def _header_lines(request: Request) -> list[tuple[str, str]]:
    """The request's headers in order, each value a line."""
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in request.headers.items()
        if name != _PROXY_AUTHORIZATION
        for value in values
    ]


def _response(
    request: Request, answer: _Answer, headers: Headers, body: bytes, flags: list[str], stop: StopDownload | None
) -> Response:
    kind = _kind_by_type(headers.get(b"Content-Type"), headers.get(b"Content-Encoding"))
    if kind is None:
        kind = responsetypes.from_args(headers=headers, url=request.url, body=body)
    version = answer.version
    if stop is not None:
        flags.append("download_stopped")
    response: Response = kind(
        url=request.url.partition("#")[0],
        status=answer.status,
        body=body,
        flags=flags,
        certificate=_certificate(answer.certificate) if answer.certificate else None,
        ip_address=_address(answer.peer) if answer.peer else None,
        protocol=f"HTTP/{version.major}.{version.minor}" if version else "HTTP/1.1",
    )
    response.headers = headers  # the constructor would copy them, name by name
    if stop is not None and stop.fail:
        stop.response = response
        raise stop
    return response


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Scrapy's headers, their names' form remembered: a web's servers use a few hundred names."""
    values: dict[bytes, list[bytes]] = {}
    for name, value in raw:
        values.setdefault(_title(name), []).append(value)
    headers = Headers()
    dict.update(headers, values)
    return headers


@lru_cache(4_096)
def _title(name: bytes) -> bytes:
    return name.title()


@lru_cache(256)
def _kind_by_type(content_type: bytes | None, content_encoding: bytes | None) -> Any:
    """The class of a response whose headers settle it; None when its URL or body must be looked at."""
    if content_type is None:
        return None
    named = {b"Content-Type": content_type}
    if content_encoding is not None:
        named[b"Content-Encoding"] = content_encoding
    kind = responsetypes.from_args(headers=Headers(named))
    return kind if issubclass(kind, responsetypes.from_mimetype("text/plain")) else None


@lru_cache(10_000)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text.partition("%")[0])


@lru_cache(1_000)
def _certificate(der: bytes) -> Certificate:
    return Certificate.load(der, format=2)  # ASN.1, OpenSSL's FILETYPE_ASN1


def _too_large(verb: str, size: int, limit: int, request: Request, what: str = "max") -> str:
    return f"{verb} {size} bytes which is larger than download {what} size ({limit}) in request {request}."
