"""The reactor's resolver answers from the frontier's cache: the checked address is the one connected to."""

from __future__ import annotations

import asyncio
import gc
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from twisted.internet.address import IPv4Address, IPv6Address

from bigcrawl.clock import ManualClock
from bigcrawl.middlewares import dns as dns_module
from bigcrawl.middlewares.dns import Resolver
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.scheduler.adapter import registry
from bigcrawl.scheduler.adapter.registry import is_proxy, record_proxy
from bigcrawl.scheduler.scheduler import Scheduler
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESSES = {
    "two.example": ["8.8.8.8", "8.8.4.4"],
    "six.example": ["2606:4700::1111"],
    "inside.example": ["10.0.0.1"],
}


class Receiver:
    """Twisted's end of a look-up."""

    def __init__(self) -> None:
        self.addresses: list[Any] = []
        self.began = 0
        self.complete = asyncio.Event()

    def resolutionBegan(self, resolution: object) -> None:  # noqa: N802 - Twisted's name
        self.began += 1

    def addressResolved(self, address: object) -> None:  # noqa: N802 - Twisted's name
        self.addresses.append(address)

    def resolutionComplete(self) -> None:  # noqa: N802 - Twisted's name
        self.complete.set()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked up; the process' cache is one of the test's own."""
    gc.collect()  # crawls of other tests are no crawls of this one
    names: list[str] = []

    async def resolve(host: str) -> list[str]:
        names.append(host)
        if host not in ADDRESSES:
            raise OSError(host)
        return ADDRESSES[host]

    cache = DnsCache(resolve, ManualClock())
    monkeypatch.setattr(dns_module, "shared_dns", lambda: cache)
    monkeypatch.setattr(registry, "_proxies", OrderedDict())
    return names


@contextmanager
def crawl(**settings: object) -> Iterator[None]:
    """A crawl on a frontier in this process."""
    crawler = new_crawler(**{"BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": False, **settings})
    frontier = Scheduler.from_crawler(crawler)
    yield
    del frontier


def look_up(*hosts: str) -> list[list[Any]]:
    async def scenario() -> list[list[Any]]:
        resolver = Resolver(None)
        found = []
        for host in hosts:
            receiver = Receiver()
            resolver.resolveHostName(receiver, host, 8080)
            await asyncio.wait_for(receiver.complete.wait(), 60)
            assert receiver.began == 1
            found.append(receiver.addresses)
        return found

    return asyncio.run(scenario())


def test_name_has_one_address_and_is_asked_for_once(asked: list[str]) -> None:
    """The first address is the one whose gate was passed; the second look-up needs no question."""
    first, second = look_up("two.example", "two.example")
    assert first == second == [IPv4Address("TCP", "8.8.8.8", 8080)]
    assert asked == ["two.example"]


def test_six_is_an_address_too(asked: list[str]) -> None:
    """IPv6 answers keep their kind."""
    assert look_up("six.example") == [[IPv6Address("TCP", "2606:4700::1111", 8080)]]


@pytest.mark.parametrize("host", ["inside.example", "127.0.0.1", "gone.example"])
def test_refused_or_missing_address_is_no_address(asked: list[str], host: str) -> None:
    """A connection that nobody checked beforehand does not get inside, either."""
    with crawl():
        assert look_up(host) == [[]]


@pytest.mark.parametrize(
    "settings",
    [{"BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True}, {"BIGCRAWL_ALLOW_ADDRESSES": ["10.0.0.0/30"]}],
)
def test_private_address_is_given_where_it_is_allowed(asked: list[str], settings: dict[str, object]) -> None:
    """The operator opens the inside, all of it or a part, for the crawl of this process."""
    with crawl(**settings):
        assert look_up("inside.example") == [[IPv4Address("TCP", "10.0.0.1", 8080)]]


def test_what_is_open_to_one_crawl_is_not_to_the_other(asked: list[str]) -> None:
    """The reactor does not know for whom it resolves: of two crawls in a process the stricter one counts."""
    with crawl(BIGCRAWL_ALLOW_ADDRESSES="10.0.0.0/30"), crawl():
        assert look_up("inside.example") == [[]]


def test_no_range_is_closed_without_a_crawl(asked: list[str]) -> None:
    """`scrapy shell http://localhost/` is nobody's trap."""
    assert look_up("inside.example") == [[IPv4Address("TCP", "10.0.0.1", 8080)]]


def test_proxy_may_stand_inside(asked: list[str]) -> None:
    """What a project fetches through is the operator's own: it is resolved, and not refused."""
    record_proxy("inside.example")
    with crawl():
        assert look_up("inside.example") == [[IPv4Address("TCP", "10.0.0.1", 8080)]]


def test_proxies_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project may have a new one for each request."""
    monkeypatch.setattr(registry, "PROXIES_KEPT", 3)
    for number in range(9):
        record_proxy(f"{number}.example")
    assert [number for number in range(9) if is_proxy(f"{number}.example")] == [6, 7, 8]
