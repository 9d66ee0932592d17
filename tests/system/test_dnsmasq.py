"""The resolver against the dnsmasq that operators run: as an authority, as a cache before another server, stopped."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.config import DnsConfig
from bigcrawl.politeness.dns_resolver import DnsResolver
from bigcrawl_simweb.basics.name_record import NameFault, NameRecord
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.explained import explained
from tests.support.running.processes import no_strays_below
from tests.support.servers.name_server import Zone, serving
from tests.support.servers.named_web import NamedWeb
from tests.system.dnsmasq import dnsmasq

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.system

NAMES = (
    "--local=/example/",
    "--host-record=both.example,192.0.2.1,2001:db8::1,77",
    "--host-record=six.example,2001:db8::6",
    "--cname=www.example,both.example,30",
    "--address=/farm.example/192.0.2.9",
    "--txt-record=empty.example,nothing",
)


@asynccontextmanager
async def asking(server: str, **config: Any) -> AsyncIterator[DnsResolver]:
    resolver = DnsResolver(DnsConfig(servers=(server,), **{"timeout_ms": 60_000, "tries": 2, **config}))
    try:
        yield resolver
    finally:
        await resolver.close()


def test_records_of_all_kinds() -> None:
    """Addresses, TTLs, aliases, wildcards, names without an address, names that are not there."""

    async def scenario() -> None:
        with dnsmasq(*NAMES) as (server, _):
            async with asking(server) as resolve:
                assert await resolve("both.example") == (("192.0.2.1",), 77_000)
                assert await resolve("www.example") == (("192.0.2.1",), 30_000)
                assert (await resolve("six.example")).addresses == ("2001:db8::6",)
                assert (await resolve("any-name.farm.example")).addresses == ("192.0.2.9",)
                assert await resolve("gone.example") == await resolve("empty.example") == ((), None)
            async with asking(server, families="ipv6-first") as resolve:
                assert await resolve("both.example") == (("2001:db8::1",), 77_000)
                assert (await resolve("any-name.farm.example")).addresses == ("192.0.2.9",)

    asyncio.run(scenario())


def test_cache_before_another_server() -> None:
    """What the server behind it says comes through, failures too; what it has cached has less of its TTL left."""

    async def scenario() -> None:
        zone = Zone(
            {
                "a.example": NameRecord(("192.0.2.1",), ttl_s=500),
                "slow.example": NameRecord(("192.0.2.2",), delay_ms=300),
                "ill.example": NameFault.SERVFAIL,
            }
        )
        async with serving(zone) as behind:
            forwarded = f"--server={behind.replace(':', '#')}"
            with dnsmasq(forwarded, "--max-cache-ttl=100") as (server, _):
                for _ in range(2):
                    async with asking(server) as resolve:
                        found = await resolve("a.example")
                        assert found.addresses == ("192.0.2.1",)
                        assert 0 < (found.ttl_ms or 0) <= 500_000
                        assert (await resolve("slow.example")).addresses == ("192.0.2.2",)
                        assert (await resolve("gone.example")).addresses == ()
                        with pytest.raises(OSError, match="general failure"):
                            await resolve("ill.example")
                assert zone.asked["a.example"] == zone.asked["slow.example"] == 1

    asyncio.run(scenario())


def test_server_that_hangs_and_comes_back() -> None:
    """While it is stopped look-ups fail in time; afterwards they succeed, on the same resolver."""

    async def scenario() -> None:
        with dnsmasq(*NAMES) as (server, process):
            async with asking(server, timeout_ms=500) as resolve:
                process.send_signal(signal.SIGSTOP)
                with pytest.raises(OSError, match=r".*"):
                    await resolve("both.example")
                process.send_signal(signal.SIGCONT)
                for _ in range(60):  # a busy machine may take longer than a look-up has
                    with suppress(OSError):
                        found = await resolve("six.example")
                        break
                assert found.addresses == ("2001:db8::6",)

    asyncio.run(scenario())


def may_ask_again(answer: object) -> bool:
    """Whether the server did not answer in time, or refused for now."""
    return isinstance(answer, TimeoutError) or (
        isinstance(answer, socket.gaierror) and answer.errno == socket.EAI_AGAIN
    )


def test_many_names_at_once() -> None:
    """More names than it takes at a time (150 by default) are all answered in the end: the others are tried again."""

    async def scenario() -> None:
        async with serving(
            Zone({f"h{i}.example": NameRecord(("192.0.2.1",), delay_ms=20) for i in range(1_000)})
        ) as behind:
            with dnsmasq(f"--server={behind.replace(':', '#')}", "--dns-forward-max=1000") as (server, _):
                async with asking(server, timeout_ms=5_000, tries=7) as resolve:
                    left = [f"h{i}.example" for i in range(1_000)]
                    # A busy machine drops most of such a burst: each round of tries gets a few hundred through.
                    for _ in range(30):
                        answers = await asyncio.gather(*map(resolve, left), return_exceptions=True)
                        left = [name for name, answer in zip(left, answers, strict=True) if may_ask_again(answer)]
                        others = [answer for answer in answers if not may_ask_again(answer)]
                        assert {getattr(other, "addresses", other) for other in others} <= {("192.0.2.1",)}
        assert not left

    asyncio.run(scenario())


def test_crawl_through_it(tmp_path: Path) -> None:
    """Pages of names, an alias, a name that turns inside: fetched and refused as they should be."""
    names: dict[str, Any] = {
        "www.example": NameRecord(("127.50.0.1",), alias="front.example"),
        "inside.example": "127.60.0.1",
    }
    pages = {"www.example/": '<a href="/2">', "www.example/2": '<a href="http://inside.example:{port}/">'}
    with no_strays_below(tmp_path), NamedWeb(["127.50.0.1", "127.60.0.1"], names, pages) as web:
        with dnsmasq(f"--server={web.name_server.replace(':', '#')}") as (server, _):
            settings = {
                "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 0,
                "BIGCRAWL_ALLOW_ADDRESSES": "127.50.0.0/16",
                "BIGCRAWL_DNS_SERVERS": server,
                "BIGCRAWL_HOST_DELAY": 0.1,
                "BIGCRAWL_PARTITIONS": 4,
            }
            with Crawl(tmp_path / "crawl", [web.url("www.example"), web.url("gone.example")], settings) as crawl:
                assert crawl.run() == 0
                urls = [web.url(host) for host in ("www.example", "inside.example", "gone.example")]
                ends = [said["outcome"]["name"] for said in explained(crawl, urls).values()]
        assert ends == ["status:200", "dropped:refused-address", "dropped:unresolved"]
        assert web.hosts_at("127.60.0.1") == set()
        assert {hit.target for hit in web.hits} == {"/robots.txt", "/", "/2"}
