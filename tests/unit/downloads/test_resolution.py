"""Where a download connects to, and where a crawl must not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from scrapy.exceptions import CannotResolveHostError

from bigcrawl.downloads.resolution import address_of
from bigcrawl.scheduler.registry import is_crawling
from bigcrawl.scheduler.scheduler import Scheduler
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOSED = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:a00:1"]
OPEN = ["1.1.1.1", "2606:4700:4700::1111"]


@pytest.fixture
def crawl() -> Iterator[None]:
    """A crawl on a frontier in this process."""
    crawler = new_crawler()
    frontier = Scheduler.from_crawler(crawler)
    assert is_crawling()
    yield
    del frontier


def address(host: str, *, allow_private: bool) -> str:
    return asyncio.run(address_of(host, allow_private=allow_private))


@pytest.mark.usefixtures("crawl")
@pytest.mark.parametrize("host", [*CLOSED, "localhost", "LOCALHOST", "localhost."])
def test_crawl_connects_to_no_address_in_a_closed_range(host: str) -> None:
    """However the host is written, and whether it is a name or an address."""
    with pytest.raises(CannotResolveHostError, match="closed range"):
        address(host, allow_private=False)


@pytest.mark.usefixtures("crawl")
@pytest.mark.parametrize("host", CLOSED)
def test_operator_may_open_them(host: str) -> None:
    """A literal is its own address, unresolved."""
    assert address(host, allow_private=True) == host


@pytest.mark.usefixtures("crawl")
@pytest.mark.parametrize("host", OPEN)
def test_public_literal_is_its_own_address(host: str) -> None:
    """Nobody is asked for it."""
    assert address(host, allow_private=False) == host


@pytest.mark.usefixtures("crawl")
@pytest.mark.parametrize("host", ["", "no.such.host.invalid"])
def test_name_without_an_address_is_scrapys_error(host: str) -> None:
    """It names the host."""
    with pytest.raises(CannotResolveHostError, match=f"^{host}: "):
        address(host, allow_private=True)
