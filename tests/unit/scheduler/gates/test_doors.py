"""The two doors: a checked address, and a start that the server's gate has granted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock, SystemClock
from bigcrawl.politeness.dns_cache import DnsCache, DnsError
from bigcrawl.scheduler.gates import doors as doors_module
from bigcrawl.scheduler.gates.closed import Closed
from bigcrawl.scheduler.gates.delays import Paces
from bigcrawl.scheduler.gates.doors import UNIDENTIFIED, Doors
from bigcrawl.scheduler.gates.spaces import Spaces
from bigcrawl.scheduler.records.passage import ANY_TIME
from tests.support.turns import loop_turns
from tests.unit.scheduler.world import connected, make_config, resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bigcrawl.clock import Clock
    from bigcrawl.exceptions import ConfigError
    from bigcrawl.redisdb.client import RedisClient


IS_NEAR = "near.example".__eq__


class Entrance:
    """Doors with their clock, and names beside those that the world resolves; one of an event waits for it."""

    def __init__(
        self,
        tmp_path: Path,
        client: RedisClient,
        resolves_here: Callable[[str], bool] | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        self.unidentified: list[ConfigError] = []
        self.clock = ManualClock()
        used: Clock = clock or self.clock
        self.sent_away: list[str] = []
        self.clock_ms = used.monotonic_ms
        self.names: dict[str, list[str] | asyncio.Event] = {}
        config = make_config(tmp_path, "crawl", **settings)
        dns, paces = DnsCache(self._resolve, used), Paces(config)
        spaces = Spaces(config.pace, paces, lambda host: host)
        self.doors = Doors(
            config.politeness,
            "node",
            client,
            dns,
            used,
            paces,
            spaces,
            on_unidentified=self.unidentified.append,
            resolves_here=resolves_here,
        )

    async def _resolve(self, host: str) -> list[str]:
        said = self.names.get(host)
        if isinstance(said, asyncio.Event):
            await said.wait()
        return said if isinstance(said, list) else await resolve(host)

    async def start_ms(self, address: str, due_ms: int, grant: str) -> int:
        """When a fetch of a host on that server may start."""
        return (await self.doors.passage(self.doors.lines(address, "a.example", grant), due_ms, grant)).at_ms

    async def turn_ms(self, address: str, grant: str) -> int:
        """When a fetch may start or, if it is sent away, when its turn to ask again comes."""
        try:
            return await self.start_ms(address, 0, grant)
        except Closed as closed:
            self.sent_away.append(grant)
            return self.clock_ms() + closed.retry_ms


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
        for _ in range(2):
            with pytest.raises(Closed) as closed:
                entrance.doors.known_address(address)
            assert (closed.value.reason, closed.value.retry_ms > 0) == ("", True)
            with pytest.raises(Closed):
                await entrance.doors.address(address)
        assert [str(error) for error in entrance.unidentified] == [UNIDENTIFIED] * 4
        assert await entrance.doors.address("127.0.0.1") == "127.0.0.1"

    run(tmp_path, redis_url, story)


def test_public_address_is_asked_by_somebody(tmp_path: Path, redis_url: str) -> None:
    """With a contact nothing is in the way."""

    async def story(entrance: Entrance) -> None:
        assert await entrance.doors.address("11.0.0.1") == "11.0.0.1"

    run(tmp_path, redis_url, story, resolves_here=IS_NEAR, contact="me@uni-somewhere.de", pld_delay=1)


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


def test_name_that_does_not_exist_ends_its_url_at_once(tmp_path: Path, redis_url: str) -> None:
    """DNS has said so, and to ask it again will not change it; nor for the host's next URL."""

    async def story(entrance: Entrance) -> None:
        for host in ("gone.no.example", "gone.no.example", "a..b"):
            with pytest.raises(Closed, match="unresolved"):
                await entrance.doors.address(host)

    run(tmp_path, redis_url, story)


def test_slow_name_holds_no_place_and_its_question_goes_on(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL waits a moment for its name, then goes back; when it comes again it waits no more."""
    monkeypatch.setattr(doors_module, "WAIT_MS_MAX", 50)
    monkeypatch.setattr(doors_module, "LOOKUPS_UNDER_WAY_MAX", 2)

    async def story(entrance: Entrance) -> None:
        answered = entrance.names["slow.org"] = entrance.names["slower.org"] = asyncio.Event()
        for host in ("slow.org", "slower.org"):
            with pytest.raises(Closed) as closed:
                await entrance.doors.address(host)
            assert (closed.value.reason, closed.value.retry_ms) == ("", doors_module.LOOKUP_RETRY_MS)
        with pytest.raises(Closed, match="for 2000 ms"):
            await entrance.doors.address("third.org")  # two are enough under way
        entrance.clock.advance(50)
        with pytest.raises(Closed, match="for 2000 ms"):
            entrance.doors.address("slow.org").send(None)  # at once: it is not even suspended
        answered.set()
        await loop_turns()
        assert entrance.doors.known_address("slow.org") == "192.0.2.1"
        assert await entrance.doors.address("third.org") == "192.0.2.1"

    run(tmp_path, redis_url, story)


def test_failure_that_nobody_waited_for_counts(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server's silence lasts longer than a URL waits: what comes of it is a try all the same."""
    monkeypatch.setattr(doors_module, "WAIT_MS_MAX", 1)

    async def story(entrance: Entrance) -> None:
        for _ in range(5):
            silence = entrance.names["mute.slow.example"] = asyncio.Event()
            with pytest.raises(Closed, match="for 2000 ms"):
                await entrance.doors.address("mute.slow.example")
            silence.set()
            await loop_turns()
            with pytest.raises(Closed) as closed:
                await entrance.doors.address("mute.slow.example")
            assert (closed.value.reason, closed.value.failure) == ("", "dns")
            entrance.clock.advance(3_600_000)

    run(tmp_path, redis_url, story)


def test_addresses_of_a_network_may_be_opened(tmp_path: Path, redis_url: str) -> None:
    """BIGCRAWL_ALLOW_ADDRESSES opens what it names, and nothing beside it."""

    async def story(entrance: Entrance) -> None:
        assert await entrance.doors.address("10.1.2.3") == "10.1.2.3"
        with pytest.raises(Closed, match="refused-address"):
            await entrance.doors.address("10.2.0.1")

    run(tmp_path, redis_url, story, allow_private_addresses=False, allow_addresses=["10.1.0.0/16"])


def test_ipv6_addresses_of_one_network_share_a_gate(tmp_path: Path, redis_url: str) -> None:
    """A /64 may be one machine; another one, and an IPv4 address beside it, are others."""

    async def story(entrance: Entrance) -> None:
        addresses = ("2001:db8:7:1::1", "2001:db8:7:1::2", "2001:db8:7:2::1", "192.0.2.90", "::ffff:192.0.2.90")
        turns = [await entrance.turn_ms(address, address) for address in addresses]
        assert [turn_ms > 15_000 for turn_ms in turns] == [False, True, False, False, True]

    run(tmp_path, redis_url, story, server_delay=30)


def test_dns_that_fails_is_no_missing_name(tmp_path: Path, redis_url: str) -> None:
    """Where DNS gives no answer the host has failed, and its URLs wait: an outage ends none of them."""

    async def story(entrance: Entrance) -> None:
        for _ in range(6):
            with pytest.raises(Closed) as closed:
                await entrance.doors.address("slow.example")
            assert (closed.value.reason, closed.value.failure) == ("", "dns")
            entrance.clock.advance(3_600_000)
        entrance.names["slow.example"] = ["192.0.2.8"]
        assert await entrance.doors.address("slow.example") == "192.0.2.8"

    run(tmp_path, redis_url, story)


def test_url_that_comes_back_early_has_not_been_tried_again(tmp_path: Path, redis_url: str) -> None:
    """A URL may be taken half a second before its host is due: only questions count as failures."""

    async def story(entrance: Entrance) -> None:
        for _ in range(2):
            for early in range(5):
                with pytest.raises(Closed) as closed:
                    await entrance.doors.address("slow.example")
                assert (closed.value.reason, closed.value.failure) == ("", "" if early else "dns")
                entrance.clock.advance(closed.value.retry_ms // 2)
            entrance.clock.advance(3_600_000)
        assert "failed_lookups=1" in repr(entrance.doors)
        entrance.names["slow.example"] = ["192.0.2.8"]
        await entrance.doors.address("slow.example")
        assert "failed_lookups=0" in repr(entrance.doors)

    run(tmp_path, redis_url, story)


def test_names_that_failed_are_remembered_up_to_a_number(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a web whose names all fail the last ones are kept; memory does not grow with it."""
    monkeypatch.setattr(doors_module, "FAILED_LOOKUPS_KEPT", 3)

    async def story(entrance: Entrance) -> None:
        def failed(host: str) -> str:
            return entrance.doors._after_failed_lookup(host, DnsError(host, "slow", 1_000, 1)).failure

        hosts = [f"h{number}.example" for number in range(10)]
        assert [failed(host) for host in hosts] == ["dns"] * 10
        assert "failed_lookups=3" in repr(entrance.doors)
        assert [failed(host) for host in hosts[-3:]] == ["", "", ""], "the same failures, told already"
        assert failed(hosts[0]) == "dns"

    run(tmp_path, redis_url, story)


def test_names_that_a_proxy_resolves_have_neither_address_nor_gate(tmp_path: Path, redis_url: str) -> None:
    """They pass at once, known or not; an address in a URL is checked as ever. A nameless crawl asks for none."""

    async def story(entrance: Entrance) -> None:
        assert await entrance.doors.address("far.no.example") == entrance.doors.known_address("far.no.example") == ""
        assert [await entrance.start_ms("", 0, f"url{i}") for i in range(3)] == [0, 0, 0]
        assert await entrance.doors.address("near.example") == "192.0.2.1"
        with pytest.raises(Closed, match="refused-address"):
            await entrance.doors.address("10.0.0.1")

    async def nameless(entrance: Entrance) -> None:
        with pytest.raises(Closed, match="for 10000 ms"):
            await entrance.doors.address("far.example")

    closed = {"server_delay": 5, "allow_private_addresses": False, "allow_addresses": "192.0.2.0/24"}
    run(tmp_path, redis_url, story, resolves_here=IS_NEAR, contact="tests@bigcrawl.org", **closed)
    run(tmp_path, redis_url, nameless, resolves_here=IS_NEAR, **closed)


def test_names_that_a_proxy_resolves_keep_their_spaces(tmp_path: Path, redis_url: str) -> None:
    """With a delay of PLDs they do not pass at once: the start in the PLD has to be asked for."""

    async def story(entrance: Entrance) -> None:
        assert entrance.doors.known_address("far.no.example") is None
        assert await entrance.doors.address("far.no.example") == ""

    run(tmp_path, redis_url, story, resolves_here=IS_NEAR, contact="me@uni-somewhere.de", pld_delay=1)


def test_starts_at_one_server_are_the_gap_apart(tmp_path: Path, redis_url: str) -> None:
    """Each asker gets the next free start; one in reach is waited for, one further on closes the door."""

    async def story(entrance: Entrance) -> None:
        turns = await asyncio.gather(*(entrance.turn_ms("192.0.2.77", f"url{i}") for i in range(3)))
        first, second, third = sorted(turns)
        assert 600 <= second - first < 1_200
        assert third - first == pytest.approx(1_200, abs=300)
        assert len(entrance.sent_away) == 1

    run(tmp_path, redis_url, story, clock=SystemClock(), server_delay=0.6)


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

    run(tmp_path, redis_url, story, clock=SystemClock(), server_delay=1.2)


def test_turns_are_bounded(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many URLs wait for their turns, what is remembered of them stays small."""
    monkeypatch.setattr(doors_module, "REMEMBERED_MAX", 2)

    async def story(entrance: Entrance) -> None:
        await entrance.start_ms("192.0.2.79", 0, "first")
        for i in range(6):
            with pytest.raises(Closed):
                await entrance.start_ms("192.0.2.79", 0, f"url{i}")
        assert "turns=2" in repr(entrance.doors)

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
        doors = entrance.doors
        busy = doors.lines("192.0.2.81", "other.example", "http://other.example/")
        lines = doors.lines("192.0.2.81", "spaced.example", "http://spaced.example/")
        assert lines.gaps == (("192.0.2.81", 400), ("pld spaced.example", 300))
        first = await doors.passage(busy, 0, "first")
        passage = await doors.passage(lines, 0, "second")
        assert passage.at_ms == passage.of_server.at_ms
        assert 395 <= passage.at_ms - first.at_ms < 800
        assert passage.of_spaces.at_ms == passage.at_ms
        assert passage.of_spaces.misses == 0
        elsewhere = doors.lines("192.0.2.82", "spaced.example", "http://spaced.example/x")
        assert 295 <= (await doors.passage(elsewhere, 0, "third")).at_ms - passage.at_ms < 600

    run(tmp_path, redis_url, story, clock=SystemClock(), server_delay=0.4, pld_delay=0.3)


def test_start_in_a_space_is_kept_for_who_must_wait_for_its_server(tmp_path: Path, redis_url: str) -> None:
    """It comes back when the server has its turn, and does not stand in the space's line again."""

    async def story(entrance: Entrance) -> None:
        doors = entrance.doors
        busy = doors.lines("192.0.2.84", "other.test", "http://other.test/")
        lines = doors.lines("192.0.2.84", "kept.test", "http://kept.test/")
        await doors.passage(busy, 0, "first")
        with pytest.raises(Closed) as closed:
            await doors.passage(lines, 0, "second")
        for name in ("third", "fourth"):  # which now wait for the space
            with pytest.raises(Closed):
                await doors.passage(doors.lines("192.0.2.85", "kept.test", "http://kept.test/"), 0, name)
        await asyncio.sleep(closed.value.retry_ms / 1000)
        passage = await doors.passage(lines, 0, "second")
        assert passage.of_spaces.granted_ms == pytest.approx(passage.of_server.granted_ms, abs=1_000)

    run(tmp_path, redis_url, story, clock=SystemClock(), server_delay=1.2, pld_delay=4)


def test_fetch_without_gates_passes_at_once(tmp_path: Path, redis_url: str) -> None:
    """When its host is due, and at any time after that."""

    async def story(entrance: Entrance) -> None:
        lines = entrance.doors.lines("192.0.2.83", "a.example", "http://a.example/")
        passage = await entrance.doors.passage(lines, 70, "url")
        assert lines.gaps == ()
        assert (passage.at_ms, passage.until_ms, passage.misses) == (70, ANY_TIME.until_ms, 0)

    run(tmp_path, redis_url, story)
