"""Where a download connects to, and where a crawl must not."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pytest
from scrapy.exceptions import CannotResolveHostError

from bigcrawl.downloads.resolution import address_of
from bigcrawl.politeness.dns_shared import leave_dns
from bigcrawl.scheduler.adapter import registry
from bigcrawl.scheduler.adapter.registry import is_crawling
from bigcrawl.scheduler.scheduler import Scheduler
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOSED = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:a00:1"]
OPEN = ["1.1.1.1", "2606:4700:4700::1111"]


@contextmanager
def crawl(**settings: object) -> Iterator[None]:
    """A crawl on the one frontier of this process: that of another test may not be collected yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_frontiers", WeakKeyDictionary())
        crawler = new_crawler(**{"BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": False, **settings})
        frontier = Scheduler.from_crawler(crawler)
        assert is_crawling()
        yield
        del frontier


def address(host: str) -> str:
    async def scenario() -> str:
        try:
            return await address_of(host)
        finally:
            await leave_dns()

    return asyncio.run(scenario())


@pytest.mark.parametrize("host", [*CLOSED, "localhost", "LOCALHOST", "localhost.", "a.localhost"])
def test_crawl_connects_to_no_address_in_a_closed_range(host: str) -> None:
    """However the host is written, and whether it is a name or an address."""
    with crawl(), pytest.raises(CannotResolveHostError, match="closed range"):
        address(host)


@pytest.mark.parametrize("host", CLOSED)
def test_operator_may_open_them(host: str) -> None:
    """A literal is its own address, unresolved."""
    with crawl(BIGCRAWL_ALLOW_PRIVATE_ADDRESSES=True):
        assert ip_address(address(host)) == ip_address(host)


def test_operator_may_open_a_network() -> None:
    """What lies in it is connected to, also as IPv6 writes it; its neighbours are not."""
    with crawl(BIGCRAWL_ALLOW_ADDRESSES="10.1.0.0/16, fd00:1::/32"):
        for host in ("10.1.2.3", "::ffff:a01:203", "fd00:1::5"):
            assert ip_address(address(host)) == ip_address(host)
        for host in ("10.2.0.1", "fd00:2::5", "127.0.0.1"):
            with pytest.raises(CannotResolveHostError, match="closed range"):
                address(host)


@pytest.mark.parametrize("host", OPEN)
def test_public_literal_is_its_own_address(host: str) -> None:
    """Nobody is asked for it."""
    with crawl():
        assert address(host) == host


@pytest.mark.parametrize("host", ["", "a..b", "no.such.host.invalid"])
def test_name_without_an_address_is_scrapys_error(host: str) -> None:
    """It names the host."""
    with pytest.raises(CannotResolveHostError, match=f"^{host}: "):
        address(host)
