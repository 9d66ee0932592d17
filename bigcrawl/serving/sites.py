"""A site that logs no request, and its open connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twisted.protocols.policies import WrappingFactory
from twisted.web.server import Site

if TYPE_CHECKING:
    from twisted.web.resource import Resource

IDLE_S: Final = 120  # a connection without a request is closed; Prometheus keeps its own from scrape to scrape


class QuietSite(Site):
    """Serves a resource, and logs no requests."""

    noisy = False

    def __init__(self, root: Resource) -> None:
        super().__init__(root, timeout=IDLE_S)  # type: ignore[no-untyped-call]

    def log(self, request: Any) -> None:
        """Not in the crawl's log."""


class SiteConnections(WrappingFactory):
    """The open connections of a site; a further one than `connections_max` is closed at once, 0: any number."""

    noisy = False

    def __init__(self, site: QuietSite, connections_max: int = 0) -> None:
        super().__init__(site)  # type: ignore[no-untyped-call]
        self._connections_max = connections_max

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """Accept a connection, unless there are too many."""
        if self._connections_max and len(self.protocols) >= self._connections_max:
            return None
        return super().buildProtocol(addr)

    def close(self) -> None:
        """Close all. A client would go on asking a crawl that has ended."""
        for protocol in list(self.protocols):
            protocol.transport.loseConnection()
