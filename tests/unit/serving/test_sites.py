"""Sites of a node: their connections are bounded, and can be closed."""

from __future__ import annotations

from typing import Any

from twisted.internet.testing import StringTransport
from twisted.web.resource import Resource

from bigcrawl.serving.sites import QuietSite, SiteConnections

MAX = 3


class Page(Resource):
    isLeaf = True  # noqa: N815 - Twisted's name

    def render_GET(self, request: Any) -> bytes:  # noqa: N802 - Twisted's name
        return b"text"


def opened(connections: SiteConnections) -> tuple[Any, StringTransport]:
    protocol, transport = connections.buildProtocol(None), StringTransport()
    protocol.makeConnection(transport)
    return protocol, transport


def test_a_connection_too_many_is_closed_and_one_that_ends_makes_room() -> None:
    connections = SiteConnections(QuietSite(Resource()), MAX)
    protocols = [opened(connections)[0] for _ in range(MAX)]
    assert connections.buildProtocol(None) is None
    protocols[0].connectionLost(None)
    assert connections.buildProtocol(None) is not None


def test_all_connections_can_be_closed() -> None:
    """Those that are idle after a request too; those that have ended are left alone."""
    connections = SiteConnections(QuietSite(Page()))
    both = [opened(connections) for _ in range(MAX)]
    both[0][0].dataReceived(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
    both[1][0].connectionLost(None)
    connections.close()
    assert [transport.disconnecting for _, transport in both] == [True, False, True]
    assert both[0][1].value().startswith(b"HTTP/1.1 200")
