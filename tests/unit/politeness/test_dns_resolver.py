"""The resolver against a real name server, over real sockets; the cache in front of it where both decide."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.config import DnsConfig
from bigcrawl.politeness import dns_resolver
from bigcrawl.politeness.dns_cache import DnsAnswer, DnsCache, DnsError
from bigcrawl.politeness.dns_resolver import DnsResolver
from bigcrawl_simweb.basics.name_record import NameFault, NameRecord
from tests.support.servers.name_server import Zone, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.servers.name_server import Said

SIX = "2001:db8::6"


@asynccontextmanager
async def asking(zone: Zone, ttl_s: int = 300, **config: Any) -> AsyncIterator[DnsResolver]:
    """A resolver that knows no other server than the zone's, and waits for it as long as a busy machine may take."""
    async with serving(zone, ttl_s) as server:
        resolver = DnsResolver(DnsConfig(**{"servers": (server,), "timeout_ms": 60_000, "tries": 2, **config}))
        try:
            yield resolver
        finally:
            await resolver.close()


def ask(zone: Zone, host: str, ttl_s: int = 300, **config: Any) -> DnsAnswer:
    async def scenario() -> DnsAnswer:
        async with asking(zone, ttl_s, **config) as resolve:
            return await resolve(host)

    return asyncio.run(scenario())


def test_addresses_come_with_their_ttl() -> None:
    """All addresses of the family, in the server's order, and for how long they hold."""
    zone = Zone({"a.example": NameRecord(("192.0.2.9", "192.0.2.1", "192.0.2.9"), ttl_s=77)})
    assert ask(zone, "a.example") == (("192.0.2.9", "192.0.2.1"), 77_000)
    assert zone.asked == {"a.example": 1}


@pytest.mark.parametrize(("address_s", "alias_s"), [(5, 60), (60, 5)])
def test_ttl_of_an_alias_counts_too(address_s: int, alias_s: int) -> None:
    """What is behind a CNAME holds no longer than the CNAME, and a CNAME no longer than what is behind it."""
    record = NameRecord(("192.0.2.1",), ttl_s=address_s, alias="front.cdn.example", alias_ttl_s=alias_s)
    assert ask(Zone({"www.a.example": record}), "www.a.example") == (("192.0.2.1",), 5_000)


@pytest.mark.parametrize(
    ("families", "both", "only_four", "only_six"),
    [
        ("ipv4-first", "192.0.2.1", "192.0.2.1", SIX),
        ("ipv6-first", SIX, "192.0.2.1", SIX),
        ("ipv4", "192.0.2.1", "192.0.2.1", None),
        ("ipv6", SIX, None, SIX),
    ],
)
def test_families_are_asked_in_their_order(
    families: str, both: str, only_four: str | None, only_six: str | None
) -> None:
    """The other family is a way out where the first has no address, not a second address to connect to."""
    names = {"both.example": ("192.0.2.1", SIX), "four.example": ("192.0.2.1",), "six.example": (SIX,)}
    zone = Zone({name: NameRecord(addresses) for name, addresses in names.items()})

    async def scenario() -> list[tuple[str, ...]]:
        async with asking(zone, families=families) as resolve:
            return [(await resolve(name)).addresses for name in names]

    expected = [(both,), (only_four,) if only_four else (), (only_six,) if only_six else ()]
    assert asyncio.run(scenario()) == expected
    assert zone.asked["both.example"] == 1


def test_name_that_does_not_exist_is_an_answer() -> None:
    """No address of one family where there is no name: the other one is not asked for."""
    zone = Zone({"empty.example": NameRecord(())})
    assert ask(zone, "gone.example") == ((), None)
    assert zone.asked == {"gone.example": 1}
    assert ask(zone, "empty.example") == ((), None)
    assert zone.asked["empty.example"] == 2


def test_denial_is_remembered_for_as_long_as_its_zone_says() -> None:
    """Within the minimum of the SOA that came with it a second question does not leave the machine."""

    async def scenario() -> Zone:
        zone = Zone({})
        async with asking(zone, ttl_s=40) as resolve:
            for _ in range(3):
                assert await resolve("gone.example") == ((), None)
        return zone

    assert asyncio.run(scenario()).asked == {"gone.example": 1}


def test_servfail_is_tried_again_and_then_a_failure_of_ours() -> None:
    """As many tries as are set; it is not said that the name does not exist."""
    zone = Zone({"ill.example": NameFault.SERVFAIL, "better.example": [NameFault.SERVFAIL, "192.0.2.3"]})
    with pytest.raises(socket.gaierror) as caught:
        ask(zone, "ill.example", tries=3)
    assert caught.value.errno == socket.EAI_AGAIN
    assert zone.asked["ill.example"] == 3
    assert ask(zone, "better.example").addresses == ("192.0.2.3",)


def test_lost_datagram_is_sent_again() -> None:
    """Silence is broken by the second try, within the time of the look-up."""
    found: DnsAnswer | None = None
    for timeout_ms in (900, 9_000, 90_000):  # on a busy machine the answer, too, may come late
        zone = Zone({"lossy.example": [NameFault.SILENT, "192.0.2.4"]})
        with suppress(TimeoutError):
            found = ask(zone, "lossy.example", timeout_ms=timeout_ms)
            break
    assert found is not None
    assert found.addresses == ("192.0.2.4",)
    assert zone.asked["lossy.example"] == 2


def test_silence_ends_in_time() -> None:
    """A look-up takes no longer than it may, all tries together."""
    zone = Zone({"mute.example": NameFault.SILENT})
    loop_s: list[float] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with asking(zone, timeout_ms=300) as resolve:
            started = loop.time()
            with pytest.raises(TimeoutError):
                await resolve("mute.example")
            loop_s.append(loop.time() - started)

    while not loop_s or (len(loop_s) < 10 and loop_s[-1] >= 2):  # a busy machine may have stood still meanwhile
        asyncio.run(scenario())
    assert min(loop_s) > 0.1
    assert loop_s[-1] < 2
    assert zone.asked["mute.example"] == 2 * len(loop_s)


def test_slow_names_hold_nobody_up() -> None:
    """A hundred slow names and a quick one: it is there first."""
    zone = Zone({f"slow{i}.example": NameRecord(("192.0.2.1",), delay_ms=1_500) for i in range(100)})
    zone.names["quick.example"] = "192.0.2.2"

    async def scenario() -> None:
        async with asking(zone, timeout_ms=30_000, tries=1) as resolve:
            slow = [asyncio.create_task(resolve(name)) for name in list(zone.names)[:-1]]
            await asyncio.sleep(0)
            assert (await resolve("quick.example")).addresses == ("192.0.2.2",)
            assert not any(task.done() for task in slow)
            assert all(answer.addresses for answer in await asyncio.gather(*slow))

    asyncio.run(scenario())


def test_this_machine_is_known_without_a_server() -> None:
    """localhost and the names below it are this machine; the hosts file is read as ever; no server is asked."""
    zone = Zone({})
    for name in ("localhost", "any.localhost"):
        assert ask(zone, name).addresses[0] == "127.0.0.1"
        assert ask(zone, name, families="ipv6").addresses == ("::1",)
    assert not zone.asked


def test_names_are_asked_for_as_they_stand() -> None:
    """A crawl's dead names must not become questions about the operator's own domain."""
    zone = Zone({"wiki": "192.0.2.5"})
    assert ask(zone, "wiki").addresses == ("192.0.2.5",)
    assert ask(zone, "gone").addresses == ()
    assert set(zone.asked) == {"wiki", "gone"}


def test_channel_is_renewed_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """c-ares keeps answers without a bound, so channels are changed; questions under way are answered all the same."""
    monkeypatch.setattr(dns_resolver, "QUESTIONS_A_CHANNEL", 7)
    zone = Zone({f"h{i}.example": NameRecord(("192.0.2.1",), delay_ms=20) for i in range(60)})

    async def scenario() -> None:
        async with asking(zone) as resolve:
            answers = await asyncio.gather(*map(resolve, zone.names))
            assert all(answer.addresses == ("192.0.2.1",) for answer in answers)
            assert "4 questions on this channel" in repr(resolve)

    asyncio.run(scenario())


def test_questions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names are wanted, a server has to answer few at a time; the time of the others does not run."""
    monkeypatch.setattr(dns_resolver, "QUESTIONS_AT_A_TIME", 5)
    tasks: list[asyncio.Task[DnsAnswer]] = []
    at_a_time: list[int] = []

    class Watched(Zone):
        def address_of(self, name: str) -> Said:
            found = super().address_of(name)
            at_a_time.append(self.asked.total() - sum(task.done() for task in tasks))
            return found

    async def scenario(slower: int) -> bool:
        """Whether all answers came in time; all together take longer than one of them may."""
        zone = Watched({f"h{i}.example": NameRecord(("192.0.2.1",), delay_ms=150 * slower) for i in range(40)})
        async with asking(zone, timeout_ms=1_000 * slower, tries=1) as resolve:
            tasks[:] = [asyncio.create_task(resolve(name)) for name in zone.names]
            await asyncio.wait(tasks)
            return all(task.exception() is None and task.result().addresses for task in tasks)

    assert any(asyncio.run(scenario(slower)) for slower in (1, 4, 16)), "a busy machine may be late for a short one"
    assert max(at_a_time) == 5


def test_one_resolver_serves_one_loop_after_the_other() -> None:
    """A process may run several loops in turn."""
    zone = Zone({"a.example": "192.0.2.1"})
    resolvers: list[DnsResolver] = []

    async def scenario() -> None:
        async with serving(zone) as server:
            resolvers.append(DnsResolver(DnsConfig(servers=(server,))))
            assert (await resolvers[0]("a.example")).addresses
            assert (await resolvers[0]("localhost")).addresses
            await resolvers[0].close()

    asyncio.run(scenario())

    async def again() -> None:
        assert (await resolvers[0]("localhost")).addresses
        await resolvers[0].close()

    asyncio.run(again())


def test_closing_ends_what_is_under_way() -> None:
    """Nobody waits for a silent server when the crawl ends."""

    async def scenario() -> None:
        async with asking(Zone({"mute.example": NameFault.SILENT}), timeout_ms=600_000) as resolve:
            task = asyncio.create_task(resolve("mute.example"))
            await asyncio.sleep(0.05)
            await resolve.close()
            with pytest.raises(OSError, match=r".+"):
                await asyncio.wait_for(task, 60)

    asyncio.run(scenario())


def test_server_that_is_not_there_is_a_failure_of_ours() -> None:
    """A refused port is no answer about the name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{taken.getsockname()[1]}"
    resolver = DnsResolver(DnsConfig(servers=(server,), timeout_ms=1_000, tries=2))

    async def scenario() -> DnsError:
        cache = DnsCache(resolver, ManualClock())
        with pytest.raises(DnsError) as caught:
            await cache.lookup("a.example")
        await resolver.close()
        return caught.value

    assert asyncio.run(scenario()).reason in {"temporary", "timeout"}


def test_cache_follows_real_ttls_within_its_bounds() -> None:
    """An answer holds for its TTL, not below the floor and not above the cap."""
    zone = Zone({name: NameRecord(("192.0.2.1",), ttl_s=ttl_s) for name, ttl_s in (("a", 0), ("b", 30), ("c", 9_999))})

    async def scenario() -> None:
        async with asking(zone) as resolve:
            clock = ManualClock()
            cache = DnsCache(resolve, clock, ttl_min_ms=10_000, ttl_max_ms=60_000)
            for name in zone.names:
                await cache.lookup(name)
            for until_ms, kept in ((9_999, "abc"), (10_000, "bc"), (29_999, "bc"), (30_000, "c"), (60_000, "")):
                clock.advance(until_ms - clock.monotonic_ms())
                assert [name for name in "abc" if cache.cached_addresses(name)] == list(kept), until_ms

    asyncio.run(scenario())
