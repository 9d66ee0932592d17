"""When a fetch may start: its server's gate and those of its spaces have granted it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import Clock, ManualClock
from bigcrawl.scheduler.gates import passages as passages_module
from bigcrawl.scheduler.gates.interfaces import Closed
from bigcrawl.scheduler.records.at_gates import ANY_TIME
from tests.support.redis_servers.client_runs import opened
from tests.support.redis_servers.one_clock import OneClock
from tests.support.running.stepped_time import run_stepped
from tests.unit.scheduler.gates.parts import Gates
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient


class Entrance:
    """Passages with a clock."""

    def __init__(self, tmp_path: Path, client: RedisClient, clock: Clock, **settings: Any) -> None:
        config = make_config(tmp_path, "crawl", **settings)
        self.clock = clock
        self.passages = Gates(config, client, self.clock).passages
        self.sent_away: list[str] = []

    async def start_ms(self, address: str, due_ms: int, grant: str) -> int:
        """When a fetch of a host on that server may start."""
        lines = self.passages.lines(address, "a.example", grant)
        return (await self.passages.wait_for_starts(lines, due_ms, grant)).at_ms

    async def turn_ms(self, address: str, grant: str) -> int:
        """When a fetch may start or, if it is sent away, when its turn to ask again comes."""
        try:
            return await self.start_ms(address, 0, grant)
        except Closed as closed:
            self.sent_away.append(grant)
            return self.clock.monotonic_ms() + closed.retry_ms


def run(tmp_path: Path, redis_url: str, story: Callable[[Entrance], Awaitable[None]], **settings: Any) -> None:
    """Run a story in a time of its own, by which the gates go too: no machine is too busy for it."""
    clock = ManualClock()

    async def scenario() -> None:
        async with opened(redis_url, crawl_clock=OneClock(clock)) as client:
            await story(Entrance(tmp_path, client, clock, **settings))

    run_stepped(clock, scenario())


def test_fetch_of_an_address_that_is_a_proxys_has_no_gate(tmp_path: Path, redis_url: str) -> None:
    """However many start at once."""

    async def story(entrance: Entrance) -> None:
        assert [await entrance.start_ms("", 0, f"url{i}") for i in range(3)] == [0, 0, 0]

    run(tmp_path, redis_url, story, server_delay=5)


def test_ipv6_addresses_of_one_network_share_a_gate(tmp_path: Path, redis_url: str) -> None:
    """A /64 may be one machine; another one, and an IPv4 address beside it, are others."""

    async def story(entrance: Entrance) -> None:
        addresses = ("2001:db8:7:1::1", "2001:db8:7:1::2", "2001:db8:7:2::1", "192.0.2.90", "::ffff:192.0.2.90")
        turns = [await entrance.turn_ms(address, address) for address in addresses]
        assert [turn_ms > 15_000 for turn_ms in turns] == [False, True, False, False, True]

    run(tmp_path, redis_url, story, server_delay=30)


def test_starts_at_one_server_are_the_gap_apart(tmp_path: Path, redis_url: str) -> None:
    """Each asker gets the next free start; one in reach is waited for, one further on closes the door."""

    async def story(entrance: Entrance) -> None:
        turns = await asyncio.gather(*(entrance.turn_ms("192.0.2.77", f"url{i}") for i in range(3)))
        first, second, third = sorted(turns)
        assert 600 <= second - first < 1_200
        assert third - first == pytest.approx(1_200, abs=300)
        assert len(entrance.sent_away) == 1

    run(tmp_path, redis_url, story, server_delay=0.6)


def test_turn_is_kept_for_who_comes_back_for_it(tmp_path: Path, redis_url: str) -> None:
    """A URL that was sent away until its turn goes before those that come later; others get in line."""

    async def story(entrance: Entrance) -> None:
        async def turn_ms(name: str) -> int:
            return await entrance.turn_ms("192.0.2.78", name) - first_ms

        first_ms = await entrance.start_ms("192.0.2.78", 0, "first")
        assert await turn_ms("second") == pytest.approx(1_200, abs=300)
        assert await turn_ms("third") == pytest.approx(2_400, abs=300)
        due_ms = first_ms + 1_250
        await asyncio.sleep(1)
        assert await turn_ms("fourth") == pytest.approx(3_600, abs=300)
        second_ms = await entrance.start_ms("192.0.2.78", due_ms, "second")
        assert due_ms <= second_ms < first_ms + 2_400, "before the third's turn"
        assert entrance.sent_away == ["second", "third", "fourth"]

    run(tmp_path, redis_url, story, server_delay=1.2)


def test_turns_are_bounded(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many URLs wait for their turns, what is remembered of them stays small."""
    monkeypatch.setattr(passages_module, "TURNS_KEPT", 2)

    async def story(entrance: Entrance) -> None:
        await entrance.start_ms("192.0.2.79", 0, "first")
        for i in range(6):
            with pytest.raises(Closed):
                await entrance.start_ms("192.0.2.79", 0, f"url{i}")
        assert "turns=2" in repr(entrance.passages)

    run(tmp_path, redis_url, story, server_delay=30)


def test_start_is_never_before_the_host_is_due(tmp_path: Path, redis_url: str) -> None:
    """The gate grants a start that the host's delay allows."""

    async def story(entrance: Entrance) -> None:
        assert await entrance.start_ms("192.0.2.80", 400, "url") >= 400

    run(tmp_path, redis_url, story, server_delay=0.1)
    run(tmp_path, redis_url, story)


def test_fetch_passes_the_gates_of_its_spaces_and_of_its_server(tmp_path: Path, redis_url: str) -> None:
    """The later start counts; the one in the space is moved to it, so that the next one there is a gap behind that."""

    async def story(entrance: Entrance) -> None:
        passages = entrance.passages
        busy = passages.lines("192.0.2.81", "other.example", "http://other.example/")
        lines = passages.lines("192.0.2.81", "spaced.example", "http://spaced.example/")
        assert lines.gaps == (("192.0.2.81", 400), ("pld spaced.example", 300))
        first = await passages.wait_for_starts(busy, 0, "first")
        granted = await passages.wait_for_starts(lines, 0, "second")
        assert granted.at_ms == granted.of_server.at_ms
        assert 400 <= granted.at_ms - first.at_ms < 800
        assert granted.of_spaces.at_ms == granted.at_ms
        assert granted.of_spaces.misses == 0
        elsewhere = passages.lines("192.0.2.82", "spaced.example", "http://spaced.example/x")
        assert 300 <= (await passages.wait_for_starts(elsewhere, 0, "third")).at_ms - granted.at_ms < 600

    run(tmp_path, redis_url, story, server_delay=0.4, pld_delay=0.3)


def test_start_in_a_space_is_kept_for_who_must_wait_for_its_server(tmp_path: Path, redis_url: str) -> None:
    """It comes back when the server has its turn, and does not stand in the space's line again."""

    async def story(entrance: Entrance) -> None:
        passages = entrance.passages
        busy = passages.lines("192.0.2.84", "other.test", "http://other.test/")
        lines = passages.lines("192.0.2.84", "kept.test", "http://kept.test/")
        await passages.wait_for_starts(busy, 0, "first")
        with pytest.raises(Closed) as closed:
            await passages.wait_for_starts(lines, 0, "second")
        for name in ("third", "fourth"):  # which now wait for the space
            with pytest.raises(Closed):
                await passages.wait_for_starts(passages.lines("192.0.2.85", "kept.test", "http://kept.test/"), 0, name)
        await asyncio.sleep(closed.value.retry_ms / 1000)
        granted = await passages.wait_for_starts(lines, 0, "second")
        assert granted.of_spaces.granted_ms == pytest.approx(granted.of_server.granted_ms, abs=1_000)

    run(tmp_path, redis_url, story, server_delay=1.2, pld_delay=4)


def test_fetch_without_gates_passes_at_once(tmp_path: Path, redis_url: str) -> None:
    """When its host is due, and at any time after that."""

    async def story(entrance: Entrance) -> None:
        lines = entrance.passages.lines("192.0.2.83", "a.example", "http://a.example/")
        granted = await entrance.passages.wait_for_starts(lines, 70, "url")
        assert lines.gaps == ()
        assert (granted.at_ms, granted.until_ms, granted.misses) == (70, ANY_TIME.until_ms, 0)

    run(tmp_path, redis_url, story)
