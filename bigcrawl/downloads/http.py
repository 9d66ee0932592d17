"""The download handler for http and https: libcurl for direct GETs, Scrapy's own handler for the rest.

With libcurl a direct GET takes a fifth of the CPU of Scrapy's default handler. Answers that libcurl or, through an HTTP
proxy, Scrapy's handler cannot read are read by our own reader as browsers read them (odd_servers.py). The contract of a
handler is kept (response_builder.py): signals with StopDownload, sizes, data loss, Scrapy's own exceptions. All other
requests (another method, a body, a proxy, a bound address, credentials in the URL, the project's own TLS settings) go
to Scrapy's default handler.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pycurl
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    NotSupported,
    ResponseDataLossError,
)
from scrapy.settings import Settings
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler
from twisted.internet.ssl import Certificate

from bigcrawl.config import read_config
from bigcrawl.downloads.connections import ConnectionLimits, KeptConnections
from bigcrawl.downloads.proxies import Proxy, refuses_tunnel
from bigcrawl.downloads.resolution import address_of
from bigcrawl.downloads.response_builder import AnswerLimits, ResponseBuilder
from bigcrawl.downloads.signalling import SignalSender
from bigcrawl.downloads.transfers import Transfers
from bigcrawl.downloads.unread import unread_of
from bigcrawl.politeness import addresses
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, FetchAbortedError, UrlRefusedError
from bigcrawl.scheduler.adapter.registry import frontier_of, is_crawling
from bigcrawl.scheduler.gates.address_check import UNIDENTIFIED
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from typing import Self
    from urllib.parse import ParseResult

    from scrapy import Request
    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

# If a project sets one of these, Scrapy's handler does https.
_TLS_SETTINGS: Final = (
    "DOWNLOAD_VERIFY_CERTIFICATES",
    "DOWNLOADER_CLIENT_TLS_CIPHERS",
    "DOWNLOADER_CLIENT_TLS_MIN_VERSION",
    "DOWNLOADER_CLIENT_TLS_MAX_VERSION",
    "DOWNLOADER_CLIENT_TLS_METHOD",
    "DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING",
    "DOWNLOADER_CLIENTCONTEXTFACTORY",
)
# Header names spelled otherwise than in Scrapy's headers, as in Twisted's client.
_SPELLINGS: Final = {
    b"Content-Md5": b"Content-MD5",
    b"Dnt": b"DNT",
    b"Etag": b"ETag",
    b"P3p": b"P3P",
    b"Te": b"TE",
    b"Www-Authenticate": b"WWW-Authenticate",
    b"X-Xss-Protection": b"X-XSS-Protection",
}
_PROXY_AUTHORIZATION: Final = b"Proxy-Authorization"
_NOT_BY_ITSELF: Final = (b"Accept", b"User-Agent")  # sent by libcurl by default
_BROKEN_CHUNK: Final = "chunk"  # in libcurl's message about a badly framed body
_LONG_SIZE: Final = "longer than"  # and about a size with zeros in front
CERTIFICATES_MAX: Final = 4_096
SERVERS_REMEMBERED: Final = 4_096
# libcurl's errors for a head that it cannot parse: not HTTP/1, a wrong length or line, an unexpected coding.
_ODD: Final = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, 8, pycurl.E_BAD_CONTENT_ENCODING})


class HttpDownloadHandler:
    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._signalling = SignalSender(crawler)
        self._stats_buffer = StatsBuffer(crawler)
        self._fails_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._timeout_s = settings.getfloat("DOWNLOAD_TIMEOUT")
        config = read_config(settings)
        self._limits = limits = config.limits
        self._bounds = AnswerLimits(
            settings.getint("DOWNLOAD_MAXSIZE"),
            settings.getint("DOWNLOAD_WARNSIZE"),
            limits.header_bytes_max,
            limits.headers_max,
        )
        self._is_nameless = not config.politeness.contact
        self._unread = unread_of(crawler)
        self._connection_limits = ConnectionLimits(
            self._limits.connection_requests_max,
            self._limits.connection_age_s,
            partial(self._unread.record_unread, None),
        )
        self._is_direct = not settings.get("DOWNLOAD_BIND_ADDRESS")
        self._has_default_tls = all(settings.get(name) == Settings().get(name) for name in _TLS_SETTINGS)
        self._has_warned_of_dataloss = False
        self._scrapys: HTTP11DownloadHandler | None = None
        self._last_headers: list[tuple[bytes, list[bytes]]] | None = None
        self._last_lines: list[bytes] = []
        self._idle: list[pycurl.Curl] = []
        self._kept = KeptConnections()
        self._lost: OrderedDict[str, None] = OrderedDict()  # servers to which the next request needs a new connection
        self._odd: OrderedDict[str, None] = OrderedDict()  # servers, and single URLs, that libcurl cannot read
        self._certificates: OrderedDict[str, Certificate] = OrderedDict()
        self._transfers: Transfers | None = None  # made with the first request: a plug-in may make this before the loop

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def close(self) -> None:
        if self._transfers is not None:
            self._transfers.close()
        if self._scrapys is not None:
            await self._scrapys.close()

    async def download_request(self, request: Request) -> Response:
        """Download; raises Scrapy's download errors and StopDownload."""
        is_plain = self._is_plain(request)
        proxy = None if is_plain or not self._is_readable(request) else Proxy.of(request)
        lines = self._header_lines(request) if is_plain or proxy else None
        if lines is None:
            return await self._through_scrapy(request)
        return await (self._through_proxy(request, lines, proxy) if proxy else self._download(request, lines))

    def _is_plain(self, request: Request) -> bool:
        return not request.meta.get("proxy") and self._is_readable(request)

    def _is_readable(self, request: Request) -> bool:
        """Return whether our own readers can fetch the URL, perhaps through a proxy."""
        meta, url = request.meta, request.url
        return (
            request.method == "GET"
            and not request.body
            and not meta.get("bindaddress")
            and self._is_direct
            and (url.startswith("http://") or self._has_default_tls)
            and ("@" not in url or "@" not in urlparse_cached(request).netloc)
        )

    def _can_return(self, request: Request) -> bool:
        """Return whether the frontier would silently take the request back for its host's next turn."""
        frontier = frontier_of(self._crawler)
        if frontier is None or UNDER_LEASE in request.meta:
            return frontier is not None
        return frontier.started.is_handed_out(request) and request.errback is None

    def _checked_address(self, request: Request) -> str:
        frontier = frontier_of(self._crawler)
        return frontier.started.address_of(request) if frontier is not None else ""

    def _truncates(self, request: Request) -> bool:
        """Return whether a truncated answer is acceptable: not for media pipelines, which ignore flags."""
        wanted = request.meta.get("download_truncate")
        if wanted is not None:
            return bool(wanted)
        frontier = frontier_of(self._crawler)
        return self._limits.truncates and (frontier is None or frontier.started.is_handed_out(request))

    async def _through_scrapy(self, request: Request) -> Response:
        if self._scrapys is None:
            from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler  # a tenth of a crawl's start

            self._scrapys = build_from_crawler(HTTP11DownloadHandler, self._crawler)
        response = await self._scrapys.download_request(request)
        if "dataloss" in response.flags:
            from bigcrawl.downloads.packing import is_whole  # few answers lose data

            if is_whole(response.headers.getlist(b"Content-Encoding"), response.body):
                response.flags.remove("dataloss")
            else:
                self._unread.record_unread(request, "dataloss")
        return response

    async def _through_proxy(self, request: Request, lines: list[bytes], proxy: Proxy) -> Response:
        """Fetch through a proxy with Scrapy's handler. Once that has failed, later requests use our own reader."""
        from scrapy.core.downloader.handlers.http11 import TunnelError  # with the handler, see `_through_scrapy`

        name = f"{urlparse_cached(request).netloc} by {proxy.host}:{proxy.port}"
        if name not in self._odd:
            try:
                return await self._through_scrapy(request)
            except DownloadTimeoutError:  # may have waited for the end of a head
                _remember_server(self._odd, name)
                raise
            except (DownloadFailedError, ResponseDataLossError, TunnelError) as error:
                if refuses_tunnel(str(error)):
                    if self._can_return(request):
                        raise DownloadFailedError(str(error)) from error
                    raise
                has_room = len(self._odd) < SERVERS_REMEMBERED
                _remember_server(self._odd, name)
                if has_room and self._can_return(request):
                    message = (
                        f"{request.url}: {error}; it is fetched again, with a more tolerant parser, at its "
                        f"host's next start time"
                    )
                    raise FetchAbortedError(message) from error
                raise
        builder = self._new_builder(request)
        try:
            return await self._ask_odd(builder, await address_of(proxy.host), lines, proxy)
        finally:
            if builder.limit:
                self._unread.record_unread(request, builder.limit)

    def _header_lines(self, request: Request) -> list[bytes] | None:
        """Return the request's header lines in order; None if a value contains a line break."""
        headers = list(dict.items(request.headers))
        if headers == self._last_headers:  # as those of nearly all pages
            return self._last_lines
        lines = []
        for name, values in headers:
            if name == _PROXY_AUTHORIZATION:
                continue
            spelled = _SPELLINGS.get(name, name)
            # For libcurl, a name followed by a semicolon has an empty value.
            lines += [spelled + b": " + value if value else spelled + b";" for value in values]
        lines += [name + b":" for name in _NOT_BY_ITSELF if not dict.get(request.headers, name)]
        joined = b"".join(lines)
        if b"\n" in joined or b"\r" in joined or b"\0" in joined:
            return None
        self._last_headers = [(name, values.copy()) for name, values in headers]
        self._last_lines = lines
        return lines

    async def _download(self, request: Request, lines: list[bytes]) -> Response:
        builder, url = self._new_builder(request), urlparse_cached(request)
        address = self._checked_address(request) or await address_of(url.hostname or "")
        if self._is_nameless and is_crawling() and addresses.refusal_of_address(address) is None:
            raise UrlRefusedError(request.url, UNIDENTIFIED)
        try:
            if url.netloc in self._odd or request.url in self._odd:
                return await self._ask_odd(builder, address, lines)
            return await self._transfer(builder, url, address, lines)
        finally:
            if builder.limit:
                self._unread.record_unread(request, builder.limit)

    def _new_builder(self, request: Request) -> ResponseBuilder:
        meta = request.meta
        bounds = self._bounds
        if "download_maxsize" in meta or "download_warnsize" in meta:
            body_max = meta.get("download_maxsize", bounds.body_max)
            body_warns = meta.get("download_warnsize", bounds.body_warns)
            bounds = bounds._replace(body_max=body_max, body_warns=body_warns)
        return ResponseBuilder(
            request,
            self._signalling,
            bounds,
            may_repeat=not self._can_return(request),
            is_stale=self._kept.is_stale,
            watch=frontier.started if (frontier := frontier_of(self._crawler)) is not None else None,
            truncates=self._truncates(request),
        )

    async def _ask_odd(
        self, builder: ResponseBuilder, address: str, lines: list[bytes], proxy: Proxy | None = None
    ) -> Response:
        from bigcrawl.downloads import odd_servers  # most crawls meet no such server

        request, url = builder.request, urlparse_cached(builder.request)
        target = _request_target(request.url.partition("#")[0])
        certificate, loss = None, ""
        try:
            async with asyncio.timeout(request.meta.get("download_timeout", self._timeout_s)):
                loss, certificate = await odd_servers.exchange(url, target, address, lines, builder, proxy)
        except TimeoutError as error:
            self._run_out_of_time(builder, error)
        if builder.stopped is None and not builder.is_truncated:
            self._raise_own_error(builder)
            if loss:
                self._mark_incomplete(builder, ResponseDataLossError(loss))
        return builder.response(address, certificate)

    async def _transfer(self, builder: ResponseBuilder, url: ParseResult, address: str, lines: list[bytes]) -> Response:
        request, meta = builder.request, builder.request.meta
        curl = self._idle.pop() if self._idle else _new_curl(self._limits.connection_age_s)
        _set_request_options(curl, request.url.partition("#")[0], address, lines)
        frontier = frontier_of(self._crawler)
        is_tried_anew = frontier is not None and frontier.started.ask_for_connection()
        curl.setopt(pycurl.FRESH_CONNECT, url.netloc in self._lost or "fresh_connection" in meta or is_tried_anew)
        self._lost.pop(url.netloc, None)
        is_last = self._connection_limits.is_last(url.netloc)
        curl.setopt(pycurl.FORBID_REUSE, is_last)
        curl.setopt(pycurl.TIMEOUT_MS, round(1000 * meta.get("download_timeout", self._timeout_s)))
        curl.setopt(pycurl.HEADERFUNCTION, builder.header)
        curl.setopt(pycurl.WRITEFUNCTION, builder.body)
        curl.setopt(pycurl.PREREQFUNCTION, builder.sending)
        builder.begin()
        error: pycurl.error | None = None
        ended_us, socket = 0, -1
        try:
            self._transfers = self._transfers or _new_transfers()
            ended_us, socket = await self._transfers.run(curl, url.netloc)
            self._kept.record_socket(builder.peer, builder.own_port, socket)
        except pycurl.error as failed:
            error = failed
        is_new = bool(curl.getinfo(pycurl.NUM_CONNECTS))
        self._connection_limits.record_use(url.netloc, is_last=is_last, is_new=is_new)
        certificate = self._read_certificate(curl, url.netloc) if url.scheme == "https" else None
        system_error = curl.getinfo(pycurl.OS_ERRNO) if error else 0
        self._stats_buffer.inc_value("bigcrawl/requests/bytes", curl.getinfo(pycurl.REQUEST_SIZE))
        _forget_answer(curl)
        self._idle.append(curl)
        if builder.is_stale:  # aborted, and so closed
            return await self._transfer(builder, url, address, lines)
        if error is not None and builder.stopped is None and not builder.is_truncated:
            self._check_failure(error, system_error, builder, is_new)
        elif error is None and not builder.is_head_whole:
            raise DownloadFailedError(f"{request.url}: the connection was closed before an answer")
        response = builder.response(builder.peer, certificate)
        if frontier is not None and ended_us:
            frontier.started.record_transfer(response, ended_us, is_kept=socket >= 0)
        return response

    def _check_failure(self, error: pycurl.error, system_error: int, builder: ResponseBuilder, is_new: bool) -> None:
        """Raise Scrapy's exception for a failed transfer, or return if the answer counts all the same.

        Args:
            error: libcurl's error.
            system_error: the operating system's error number; 0 for none.
            builder: has what came of the answer, if anything.
            is_new: whether the connection was made for this transfer.
        """
        code, message = error.args
        request = builder.request
        if builder.is_lost:
            _remember_server(self._lost, urlparse_cached(request).netloc)
        self._raise_own_error(builder)
        is_misread = code == pycurl.E_RECV_ERROR and _BROKEN_CHUNK in message
        if code == pycurl.E_PARTIAL_FILE and builder.is_chunked():
            _remember_server(self._odd, request.url)  # perhaps it was cut behind its last chunk; the next try shows it
        if code in _ODD or (is_misread and _LONG_SIZE in message):
            # Over a new connection, it is the server's own answer, and later requests to it are read by `odd_servers`.
            # Over an old one, it may be the rest of the previous answer.
            has_room = len(self._odd) < SERVERS_REMEMBERED  # without room, the URL might be taken back for ever
            _remember_server(self._odd if is_new else self._lost, urlparse_cached(request).netloc)
            if has_room and self._can_return(request):
                raise FetchAbortedError(
                    f"{request.url}: {message}; it is fetched again, with a more tolerant "
                    f"parser, at its host's next start time"
                )
        if (code == pycurl.E_PARTIAL_FILE or is_misread) and builder.is_head_whole:
            self._mark_incomplete(builder, ResponseDataLossError(message))
            return
        if code == pycurl.E_COULDNT_CONNECT and system_error == errno.ECONNREFUSED:
            raise DownloadConnectionRefusedError(message) from error
        if code == pycurl.E_OPERATION_TIMEDOUT:
            self._run_out_of_time(builder, error)
            return
        if code == pycurl.E_COULDNT_RESOLVE_HOST:
            raise CannotResolveHostError(message) from error
        raise DownloadFailedError(f"{message} (libcurl's error {code})") from error

    def _raise_own_error(self, builder: ResponseBuilder) -> None:
        if builder.error is not None:
            raise builder.error
        url = builder.request.url
        if builder.is_late:
            raise FetchAbortedError(f"{url}: not sent, because this node's lease has expired")
        if builder.is_lost:
            raise FetchAbortedError(f"{url}: the connection was lost, and a retry must wait for its host's delay")

    def _run_out_of_time(self, builder: ResponseBuilder, error: Exception) -> None:
        """Truncate an answer whose time is up, unless it seems complete; raise DownloadTimeoutError if forbidden."""
        self._raise_own_error(builder)
        if not builder.is_unpackable() and not builder.has_fallen_silent() and not builder.cut_off():
            raise DownloadTimeoutError(f"Getting {builder.request.url} took too long: {error}") from error

    def _mark_incomplete(self, builder: ResponseBuilder, error: ResponseDataLossError) -> None:
        """Flag a response as incomplete, or raise the error; do nothing if its compressed stream is complete."""
        if builder.is_unpackable():
            return
        request = builder.request
        if not request.meta.get("download_fail_on_dataloss", self._fails_on_dataloss):
            builder.mark_incomplete()
            return
        if not self._has_warned_of_dataloss:
            self._has_warned_of_dataloss = True
            logger.warning(
                "Got data loss in %(url)s. If you want to process broken responses set the setting "
                "DOWNLOAD_FAIL_ON_DATALOSS = False -- This message won't be shown in further requests",
                {"url": request.url},
            )
        raise error

    def _read_certificate(self, curl: pycurl.Curl, netloc: str) -> Certificate | None:
        """Return the server's certificate. libcurl reports it for new connections only, so it is cached."""
        chain = curl.getinfo(pycurl.INFO_CERTINFO)
        pem = next((value for name, value in chain[0] if name == "Cert"), None) if chain else None
        if pem is not None:
            self._certificates[netloc] = Certificate.loadPEM(pem)
            if len(self._certificates) > CERTIFICATES_MAX:
                self._certificates.popitem(last=False)
        return self._certificates.get(netloc)


def _new_transfers() -> Transfers:
    try:
        return Transfers()
    except RuntimeError as error:
        raise NotSupported("bigcrawl needs the asyncio reactor: unset TWISTED_REACTOR") from error


def _new_curl(connection_age_s: float) -> Any:
    curl = pycurl.Curl()
    curl.setopt(pycurl.MAXLIFETIME_CONN, math.ceil(connection_age_s))
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.PATH_AS_IS, 1)
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    curl.setopt(pycurl.PROXY, "")  # ignore the environment, which Scrapy's middleware reads
    curl.setopt(pycurl.SSL_VERIFYPEER, 0)
    curl.setopt(pycurl.SSL_VERIFYHOST, 0)
    curl.setopt(pycurl.OPT_CERTINFO, 1)
    return curl


def _remember_server(servers: OrderedDict[str, None], netloc: str) -> None:
    servers[netloc] = None
    if len(servers) > SERVERS_REMEMBERED:
        servers.popitem(last=False)


def _forget_answer(curl: Any) -> None:
    """Make a handle forget its last answer: an idle handle must not keep a page in memory."""
    for callback in (pycurl.HEADERFUNCTION, pycurl.WRITEFUNCTION, pycurl.PREREQFUNCTION):
        curl.setopt(callback, _ignore_data)


def _ignore_data(*_what: object) -> None:
    """Ignore the data: the callback of an idle handle."""


def _set_request_options(curl: Any, url: str, address: str, lines: list[bytes]) -> None:
    """Set the options of one request. The connection goes to `address`, which was checked."""
    curl.setopt(pycurl.URL, url)
    # The exact bytes of the request line: libcurl would change escapes.
    curl.setopt(pycurl.REQUEST_TARGET, _request_target(url))
    curl.setopt(pycurl.HTTPHEADER, lines)
    curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:" if ":" in address else f"::{address}:"])


def _request_target(url: str) -> str:
    rest = url[url.index("//") + 2 :]
    slash, mark = rest.find("/"), rest.find("?")
    if slash >= 0 and not 0 <= mark < slash:
        return rest[slash:]
    return "/" + rest[mark:] if mark >= 0 else "/"
