"""A site that logs no request, and limits its connections, because any client can hold them open.

At `CONNECTIONS_MAX` it closes the connection idle longest. It always closes one whose request takes `REQUEST_S` to
arrive. The last `SPARE_DESCRIPTORS` open files are reserved for the crawl.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.error import CannotListenError
from twisted.web.http import HTTPChannel
from twisted.web.server import Site

if TYPE_CHECKING:
    from twisted.web.resource import Resource

logger = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 64
IDLE_S: Final = 120  # long enough for Prometheus to keep a connection between scrapes
REQUEST_S: Final = 10
SPARE_DESCRIPTORS: Final = 256  # a fourth of the process' limit if that is less than 1,024


class _CountedConnection(HTTPChannel):
    """Reports to its site whether it is handling a request."""

    site: QuietSite
    _deadline: Any | None = None
    _is_busy = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name, here and below
        super().connectionMade()  # type: ignore[no-untyped-call]
        self.site.record_waiting(self)
        self._begin_request()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        spare = min(SPARE_DESCRIPTORS, limit // 4)
        # A new descriptor has the lowest free number, so this shows how many are open.
        if getattr(self.transport, "fileno", lambda: -1)() >= limit - spare > 0:
            logger.warning(
                "a connection to this node's dashboard or metrics was closed: of %(limit)d open files, the last "
                "%(spare)d are reserved for the crawl; raise ulimit -n, or LimitNOFILE of its service",
                {"limit": limit, "spare": spare},
            )
            self.abort()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self._deadline is None and not self._is_busy:
            self._begin_request()
        super().dataReceived(data)  # type: ignore[no-untyped-call]

    def allContentReceived(self) -> None:  # noqa: N802
        self._end_request()
        self._is_busy = True
        self.site.record_busy(self)
        super().allContentReceived()  # type: ignore[no-untyped-call]

    def requestDone(self, request: Any) -> None:  # noqa: N802
        self._is_busy = False
        self.site.record_waiting(self)
        super().requestDone(request)  # type: ignore[no-untyped-call]
        if not self.persistent:  # the client might not read its answer
            self.setTimeout(IDLE_S)  # type: ignore[no-untyped-call]

    def timeoutConnection(self) -> None:  # noqa: N802
        self.abort()

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802
        self._end_request()
        self.site.record_lost(self)
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    def abort(self) -> None:
        transport: Any = self.transport
        transport.abortConnection()

    def _begin_request(self) -> None:
        self._deadline = self.callLater(REQUEST_S, self.abort)  # type: ignore[no-untyped-call]

    def _end_request(self) -> None:
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None


class QuietSite(Site):
    noisy = False
    protocol = _CountedConnection  # type: ignore[assignment]

    def __init__(self, root: Resource, connections_max: int = CONNECTIONS_MAX) -> None:
        super().__init__(root, timeout=IDLE_S)  # type: ignore[no-untyped-call]
        self._connections_max = connections_max
        self._waiting: dict[_CountedConnection, None] = {}  # without a request, the longest first
        self._busy: set[_CountedConnection] = set()

    def log(self, request: Any) -> None:
        """Do nothing."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """Accept a connection, if necessary instead of an idle one; refuse it if all are busy."""
        if len(self._waiting) + len(self._busy) >= self._connections_max:
            if not self._waiting:
                return None
            oldest = next(iter(self._waiting))
            self.record_lost(oldest)
            oldest.abort()
        return super().buildProtocol(addr)  # type: ignore[no-untyped-call]

    def record_waiting(self, connection: _CountedConnection) -> None:
        self._busy.discard(connection)
        self._waiting[connection] = None

    def record_busy(self, connection: _CountedConnection) -> None:
        self._waiting.pop(connection, None)
        self._busy.add(connection)

    def record_lost(self, connection: _CountedConnection) -> None:
        self._waiting.pop(connection, None)
        self._busy.discard(connection)

    def close(self) -> None:
        """Close all connections, so that no client continues to query an ended crawl."""
        for connection in [*self._waiting, *self._busy]:
            connection.loseConnection()  # type: ignore[no-untyped-call]


RETRY_S: Final = 10.0  # wait for a port to become free, for instance that of an ending process


class Listener:
    """Serves a site at the first free port of a range, the first to the last of `ports`; 0 and 0 for any.

    While all are taken, it retries every `RETRY_S`. `name`, `setting` and the page's `path` are for the log.
    """

    def __init__(self, name: str, setting: str, address: str, ports: tuple[int, int], path: str) -> None:
        self._name, self._setting, self._path = name, setting, path
        self._address, self._ports = address, ports
        self._site: QuietSite | None = None
        self._port: Any | None = None
        self._again: asyncio.TimerHandle | None = None
        self.url: str | None = None

    def listen(self, site: QuietSite) -> None:
        try:
            self._port = self._first_free(site)
        except CannotListenError as error:
            if self._again is None:
                self._log_failure(error)
            self._again = asyncio.get_running_loop().call_later(RETRY_S, self.listen, site)
            return
        self._site = site
        found = ip_address(self._address)
        host = f"[{found}]" if found.version == 6 else str(found)
        self.url = f"http://{host}:{self._port.getHost().port}{self._path}"
        logger.info("%(name)s: %(url)s", {"name": self._name, "url": self.url})

    async def close(self) -> None:
        if self._again is not None:
            self._again.cancel()
        if self._port is not None and (stopping := self._port.stopListening()) is not None:
            await stopping.asFuture(asyncio.get_running_loop())
        if self._site is not None:
            self._site.close()

    def _first_free(self, site: QuietSite) -> Any:
        from twisted.internet import reactor as installed  # only after the crawl has chosen one

        reactor: Any = installed  # zope's interfaces are not known to mypy
        first, last = self._ports
        for port in range(first, last):
            try:
                return reactor.listenTCP(port, site, interface=self._address)
            except CannotListenError:
                continue
        return reactor.listenTCP(last, site, interface=self._address)

    def _log_failure(self, error: CannotListenError) -> None:
        logger.error(
            "%(name)s cannot be served yet: %(setting)s %(ports)s at %(address)s cannot be used (%(error)s); "
            "tried again every %(seconds)d s",
            {
                "name": self._name,
                "setting": self._setting,
                "ports": "-".join(map(str, dict.fromkeys(self._ports))),
                "address": self._address,
                "error": error.socketError,
                "seconds": RETRY_S,
            },
        )
