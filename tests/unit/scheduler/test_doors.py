"""The two doors: a checked address, and a start that the server's gate has granted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.scheduler import doors as doors_module
from bigcrawl.scheduler.doors import GRANT_KEPT_MS, LOOKUPS_MAX, UNIDENTIFIED, Closed, Doors
from bigcrawl.scheduler.paces import Paces
from tests.unit.scheduler.world import connected, make_config, resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bigcrawl.exceptions import ConfigError
    from bigcrawl.redisdb.client import RedisClient


class Entrance:
    """Doors with their clock."""

    def __init__(self, tmp_path: Path, client: RedisClient, **settings: Any) -> None:
        self.clock = ManualClock()
        config = make_config(tmp_path, "crawl", **settings)
        self.doors = Doors(config.politeness, client, DnsCache(resolve, self.clock), self.clock, Paces(config))

    async def start_ms(self, address: str, due_ms: int, due_server_ms: int, grant: str) -> int:
        """When a fetch of a host on that server may start."""
        gap_ms = self.doors.server_delay_ms(address, "a.example")
        return await self.doors.start_ms(address, due_ms, due_server_ms, grant, gap_ms)


def run(tmp_path: Path, redis_url: str, story: Callable[[Entrance], Awaitable[None]], **settings: Any) -> None:
    async def scenario() -> None:
        async with connected(redis_url) as client:
            await story(Entrance(tmp_path, client, **settings))

    asyncio.run(scenario())


def test_private_address_is_refused_whatever_name_leads_there(tmp_path: Path, redis_url: str) -> None:
    """The resolved address is what is checked, for a URL asked the short way and the long way."""

    async def story(entrance: Entrance) -> None:
        for question in (entrance.doors.address("127.0.0.1"), entrance.doors.address("[::1]".strip("[]"))):
            with pytest.raises(Closed) as closed:
                await question
            assert closed.value.reason == "refused-address"

    run(tmp_path, redis_url, story, allow_private_addresses=False)


@pytest.mark.parametrize("address", ["11.0.0.1", "2a02::1"])
def test_public_address_is_not_asked_namelessly(tmp_path: Path, redis_url: str, address: str) -> None:
    """The crawl is to end, and the URL comes back: the short way, the long way, and with every server open."""

    async def story(entrance: Entrance) -> None:
        told: list[ConfigError] = []
        entrance.doors.on_unidentified = told.append
        for _ in range(2):
            with pytest.raises(Closed) as closed:
                entrance.doors.known_address(address)
            assert (closed.value.reason, closed.value.retry_ms > 0) == ("", True)
            with pytest.raises(Closed):
                await entrance.doors.address(address)
        assert [str(error) for error in told] == [UNIDENTIFIED] * 4
        assert await entrance.doors.address("127.0.0.1") == "127.0.0.1"

    run(tmp_path, redis_url, story)


def test_public_address_is_asked_by_somebody(tmp_path: Path, redis_url: str) -> None:
    """With a contact nothing is in the way."""

    async def story(entrance: Entrance) -> None:
        assert await entrance.doors.address("11.0.0.1") == "11.0.0.1"

    run(tmp_path, redis_url, story, contact="me@uni-somewhere.de")


def test_known_address_needs_no_question_when_there_is_no_gate(tmp_path: Path, redis_url: str) -> None:
    """Without a server gap a resolved host passes at once; with one, the gate must be asked each time."""

    async def story(entrance: Entrance) -> None:
        assert entrance.doors.known_address("a.example") is None
        assert await entrance.doors.address("a.example") == "192.0.2.1"
        assert entrance.doors.known_address("a.example") == "192.0.2.1"

    async def with_gate(entrance: Entrance) -> None:
        await entrance.doors.address("a.example")
        assert entrance.doors.known_address("a.example") is None

    run(tmp_path, redis_url, story)
    run(tmp_path, redis_url, with_gate, server_delay=1)


def test_name_that_does_not_resolve_is_tried_a_few_times_and_then_ends_its_url(tmp_path: Path, redis_url: str) -> None:
    """A failure snoozes the host, not the node; after the last try the URL ends, and the host's next ones at once."""

    async def story(entrance: Entrance) -> None:
        for attempt in range(1, LOOKUPS_MAX + 1):
            with pytest.raises(Closed) as closed:
                await entrance.doors.address("gone.no.example")
            is_last = attempt == LOOKUPS_MAX
            assert closed.value.reason == ("unresolved" if is_last else "")
            assert is_last or closed.value.retry_ms > 0
            entrance.clock.advance(3_600_000)
        with pytest.raises(Closed, match="unresolved"):
            await entrance.doors.address("gone.no.example")

    run(tmp_path, redis_url, story)


def test_dns_that_fails_is_no_missing_name(tmp_path: Path, redis_url: str) -> None:
    """Where DNS gives no answer each URL has its tries: an outage must not end a host's URLs by the thousand."""

    async def story(entrance: Entrance) -> None:
        for attempt in range(1, 2 * LOOKUPS_MAX + 1):
            with pytest.raises(Closed) as closed:
                await entrance.doors.address("slow.example")
            assert closed.value.reason == ("" if attempt % LOOKUPS_MAX else "unresolved")
            entrance.clock.advance(3_600_000)
        assert "failed_lookups=0" in repr(entrance.doors)

    run(tmp_path, redis_url, story)


def test_starts_at_one_server_are_the_gap_apart(tmp_path: Path, redis_url: str) -> None:
    """Each asker gets the next free start; one in reach is waited for, one further on closes the door."""

    async def story(entrance: Entrance) -> None:
        starts = []
        for i in range(3):
            try:
                starts.append(await entrance.start_ms("192.0.2.77", 0, 0, f"url{i}"))
            except Closed as closed:
                starts.append(closed.retry_ms)
        assert starts == pytest.approx([0, 600, 1_200], abs=100)

    run(tmp_path, redis_url, story, server_delay=0.6)


def test_granted_start_is_kept_for_who_comes_back_for_it(tmp_path: Path, redis_url: str) -> None:
    """A URL sent away until its start does not ask again and lose another gap; one far too late does."""

    async def story(entrance: Entrance) -> None:
        await entrance.start_ms("192.0.2.78", 0, 0, "first")
        with pytest.raises(Closed) as closed:
            await entrance.start_ms("192.0.2.78", 0, 0, "second")
        granted_ms = entrance.clock.monotonic_ms() + closed.value.retry_ms
        entrance.clock.advance(closed.value.retry_ms)
        assert await entrance.start_ms("192.0.2.78", 0, 0, "second") == granted_ms
        with pytest.raises(Closed) as closed:
            await entrance.start_ms("192.0.2.78", 0, 0, "late")
        entrance.clock.advance(closed.value.retry_ms + GRANT_KEPT_MS + 1)
        with pytest.raises(Closed):
            await entrance.start_ms("192.0.2.78", 0, 0, "late")

    run(tmp_path, redis_url, story, server_delay=30)


def test_grants_are_bounded(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many URLs wait for their starts, what is remembered of them stays small."""
    monkeypatch.setattr(doors_module, "GRANTS_MAX", 2)

    async def story(entrance: Entrance) -> None:
        for i in range(6):
            with pytest.raises(Closed):
                await entrance.start_ms("192.0.2.79", 1_000_000, 0, f"url{i}")
        assert "grants=2" in repr(entrance.doors)

    run(tmp_path, redis_url, story, server_delay=1)


def test_start_is_never_before_the_host_is_due(tmp_path: Path, redis_url: str) -> None:
    """The gate grants a start that the host's delay allows."""

    async def story(entrance: Entrance) -> None:
        assert await entrance.start_ms("192.0.2.80", 400, 0, "url") >= 400

    run(tmp_path, redis_url, story, server_delay=0.1)
    run(tmp_path, redis_url, story)
