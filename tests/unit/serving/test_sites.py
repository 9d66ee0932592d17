"""Sites of a node: whoever keeps connections keeps them from nobody, and takes no descriptor that the crawl needs."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from bigcrawl.serving.sites import IDLE_S, REQUEST_S, SPARE_DESCRIPTORS, QuietSite

if TYPE_CHECKING:
    from twisted.web.server import Request

MAX = 3
ASKING = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSING = b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


class Page(Resource):
    """Answers at once, or, if `is_slow`, when the test calls `finish` of what is in `asked`."""

    isLeaf = True  # noqa: N815 - Twisted's name

    def __init__(self, *, is_slow: bool = False) -> None:
        super().__init__()
        self.asked: list[Request] = []
        self._is_slow = is_slow

    def render_GET(self, request: Request) -> bytes | int:  # noqa: N802 - Twisted's name
        self.asked.append(request)
        return NOT_DONE_YET if self._is_slow else b"text"

    render_POST = render_GET  # noqa: N815 - Twisted's name


class Transport(StringTransport):
    """Notices the end of its connection; has a descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.protocol: Any = None

    def fileno(self) -> int:
        return self._descriptor

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        if not self.disconnected:
            super().abortConnection()
            self.protocol.connectionLost(None)

    def is_closed(self) -> bool:
        return self.disconnected

    @property
    def is_open(self) -> bool:
        return not self.disconnected and not self.disconnecting

    @property
    def answers(self) -> int:
        return self.value().count(b"HTTP/1.1 200")


class Served:
    """A site with its own clock."""

    def __init__(self, page: Page | None = None) -> None:
        self.clock = Clock()
        self.site = QuietSite(page or Page(), MAX)
        self.site.reactor = self.clock  # type: ignore[assignment]

    def opened(self, descriptor: int = 9) -> Transport | None:
        protocol = self.site.buildProtocol(None)
        if protocol is None:
            return None
        transport = Transport(descriptor)
        transport.protocol = protocol
        protocol.makeConnection(transport)
        return transport

    def open(self, data: bytes = b"") -> Transport:
        transport = self.opened()
        assert transport is not None
        transport.protocol.dataReceived(data)
        return transport


@pytest.mark.parametrize("kept", [b"", b"GET /a HT", ASKING], ids=["silent", "slow", "answered"])
def test_connection_too_many_takes_the_place_of_the_one_that_waits_longest(kept: bytes) -> None:
    """However many are kept open, a further one is answered."""
    served = Served()
    held = [served.open(kept) for _ in range(MAX)]
    for _ in range(2):
        assert served.open(ASKING).answers == 1
    assert [transport.is_open for transport in held] == [False, False, True]


def test_connection_with_a_request_in_hand_keeps_its_place() -> None:
    """If all have one, a further one is refused; one that is answered waits again, behind those before it."""
    page = Page(is_slow=True)
    served = Served(page)
    held = [served.open(ASKING) for _ in range(MAX)]
    assert served.opened() is None
    page.asked[1].finish()
    assert served.opened() is not None
    assert [transport.is_open for transport in held] == [True, False, True]


@pytest.mark.parametrize("bodies", [b"", b"Content-Length: 100\r\n\r\nbody"], ids=["head", "body"])
def test_request_that_comes_byte_by_byte_is_not_waited_for(bodies: bytes) -> None:
    """Neither its head nor its body; each byte would begin another wait otherwise."""
    served = Served()
    transport = served.open(b"POST /a HTTP/1.1\r\nHost: a\r\n" + bodies)
    for _ in range(REQUEST_S - 1):
        served.clock.advance(1)
        transport.protocol.dataReceived(b"x")
    assert not transport.is_closed()
    served.clock.advance(1)
    assert transport.is_closed()


def test_second_request_of_a_connection_has_its_own_time() -> None:
    """Which begins with its first byte: a scraper's connection waits for the next scrape."""
    served = Served()
    transport = served.open(ASKING)
    served.clock.advance(IDLE_S - 1)
    transport.protocol.dataReceived(ASKING[:9])
    assert transport.is_open
    served.clock.advance(REQUEST_S - 1)
    transport.protocol.dataReceived(ASKING[9:])
    assert transport.answers == 2
    served.clock.advance(REQUEST_S)
    assert transport.is_open
    transport.protocol.dataReceived(ASKING[:9])
    served.clock.advance(REQUEST_S)
    assert not transport.is_open


@pytest.mark.parametrize(("asking", "seconds"), [(b"", REQUEST_S), (ASKING, IDLE_S), (CLOSING, IDLE_S)])
def test_connection_without_a_request_ends(asking: bytes, seconds: int) -> None:
    """Also one whose client does not take the answer."""
    served = Served()
    transport = served.open(asking)
    served.clock.advance(seconds - 1)
    assert not transport.is_closed()
    served.clock.advance(1)
    assert transport.is_closed()
    assert served.clock.getDelayedCalls() == []


def test_long_answer_has_no_bound() -> None:
    page = Page(is_slow=True)
    served = Served(page)
    transport = served.open(ASKING)
    served.clock.advance(10 * IDLE_S)
    page.asked[0].finish()
    assert transport.answers == 1


def test_last_descriptors_of_the_process_are_left_to_the_crawl(caplog: pytest.LogCaptureFixture) -> None:
    served = Served()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    spare = min(SPARE_DESCRIPTORS, limit // 4)
    assert [served.opened(limit - spare - past).is_open for past in (0, 1)] == [False, True]  # type: ignore[union-attr]
    assert "raise ulimit -n" in caplog.text


def test_all_connections_can_be_closed() -> None:
    """Those that are idle after a request too; those that have ended are left alone."""
    served = Served()
    transports = [served.open(ASKING if not number else b"") for number in range(MAX)]
    transports[1].protocol.connectionLost(None)
    served.site.close()
    assert [transport.disconnecting for transport in transports] == [True, False, True]
    assert transports[0].answers == 1
