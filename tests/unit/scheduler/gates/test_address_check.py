"""Which address a host is asked at: found, checked, and not asked namelessly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.politeness.dns_cache import DnsCache, DnsError
from bigcrawl.scheduler.gates import address_check
from bigcrawl.scheduler.gates.address_check import UNIDENTIFIED
from bigcrawl.scheduler.gates.interfaces import WAIT_MS_MAX, Closed
from tests.support.running.stepped_time import SteppedLoop, run_stepped
from tests.support.running.turns import loop_turns
from tests.unit.scheduler.gates.parts import Gates
from tests.unit.scheduler.world import ADDRESS, connected, make_config, resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient


IS_NEAR = "near.example".__eq__


class Check:
    """A check with its clock, and names beside those that the world resolves; one of an event waits for it."""

    def __init__(
        self,
        tmp_path: Path,
        client: RedisClient,
        resolves_here: Callable[[str], bool] = lambda host: True,
        **settings: Any,
    ) -> None:
        self.clock = ManualClock()
        self.names: dict[str, list[str] | asyncio.Event] = {}
        config, dns = make_config(tmp_path, "crawl", **settings), DnsCache(self._resolve, self.clock)
        gates = Gates(config, client, self.clock, dns, resolves_here=resolves_here)
        self.unidentified, self.addresses = gates.unidentified, gates.addresses

    async def _resolve(self, host: str) -> list[str]:
        said = self.names.get(host)
        if isinstance(said, asyncio.Event):
            await said.wait()
        return said if isinstance(said, list) else await resolve(host)


def run(tmp_path: Path, redis_url: str, story: Callable[[Check], Awaitable[None]], **settings: Any) -> None:
    async def scenario() -> None:
        async with connected(redis_url) as client:
            await story(Check(tmp_path, client, **settings))

    asyncio.run(scenario())


def test_private_address_is_refused_whatever_name_leads_there(tmp_path: Path, redis_url: str) -> None:
    """The resolved address is what is checked, for a URL asked the short way and the long way."""

    async def story(check: Check) -> None:
        for question in (check.addresses.find("127.0.0.1"), check.addresses.find("[::1]".strip("[]"))):
            with pytest.raises(Closed) as closed:
                await question
            assert closed.value.reason == "refused-address"

    run(tmp_path, redis_url, story, allow_private_addresses=False)


@pytest.mark.parametrize("address", ["11.0.0.1", "2a02::1"])
def test_public_address_is_not_asked_namelessly(tmp_path: Path, redis_url: str, address: str) -> None:
    """The crawl is to end, and the URL comes back: the short way, the long way, and with every server open."""

    async def story(check: Check) -> None:
        for _ in range(2):
            with pytest.raises(Closed) as closed:
                check.addresses.known(address)
            assert (closed.value.reason, closed.value.retry_ms > 0) == ("", True)
            with pytest.raises(Closed):
                await check.addresses.find(address)
        assert [str(error) for error in check.unidentified] == [UNIDENTIFIED] * 4
        assert await check.addresses.find("127.0.0.1") == "127.0.0.1"

    run(tmp_path, redis_url, story)


def test_public_address_is_asked_by_somebody(tmp_path: Path, redis_url: str) -> None:
    """With a contact nothing is in the way."""

    async def story(check: Check) -> None:
        assert await check.addresses.find("11.0.0.1") == "11.0.0.1"

    run(tmp_path, redis_url, story, resolves_here=IS_NEAR, contact="me@uni-somewhere.de", pld_delay=1)


def test_address_that_was_found_is_known(tmp_path: Path, redis_url: str) -> None:
    """Nobody needs to be asked for it again."""

    async def story(check: Check) -> None:
        assert check.addresses.known("a.example") is None
        assert await check.addresses.find("a.example") == "192.0.2.1"
        assert check.addresses.known("a.example") == "192.0.2.1"

    run(tmp_path, redis_url, story)


def test_name_that_does_not_exist_ends_its_url_at_once(tmp_path: Path, redis_url: str) -> None:
    """DNS has said so, and to ask it again will not change it; nor for the host's next URL."""

    async def story(check: Check) -> None:
        for host in ("gone.no.example", "gone.no.example", "a..b"):
            with pytest.raises(Closed, match="unresolved"):
                await check.addresses.find(host)

    run(tmp_path, redis_url, story)


def test_slow_name_holds_no_place_and_its_question_goes_on(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL waits a moment for its name, then goes back; when it comes again it waits no more."""
    monkeypatch.setattr(address_check, "WAIT_MS_MAX", 50)
    monkeypatch.setattr(address_check, "LOOKUPS_UNDER_WAY_MAX", 2)

    async def story(check: Check) -> None:
        answered = check.names["slow.org"] = check.names["slower.org"] = asyncio.Event()
        for host in ("slow.org", "slower.org"):
            with pytest.raises(Closed) as closed:
                await check.addresses.find(host)
            assert (closed.value.reason, closed.value.retry_ms) == ("", address_check.LOOKUP_RETRY_MS)
        with pytest.raises(Closed, match="for 2000 ms"):
            await check.addresses.find("third.org")  # two are enough under way
        check.clock.advance(50)
        with pytest.raises(Closed, match="for 2000 ms"):
            check.addresses.find("slow.org").send(None)  # at once: it is not even suspended
        answered.set()
        await loop_turns()
        assert check.addresses.known("slow.org") == "192.0.2.1"
        assert await check.addresses.find("third.org") == "192.0.2.1"

    run(tmp_path, redis_url, story)


def test_failure_that_nobody_waited_for_counts(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server's silence lasts longer than a URL waits: what comes of it is a try all the same."""
    monkeypatch.setattr(address_check, "WAIT_MS_MAX", 1)

    async def story(check: Check) -> None:
        for _ in range(5):
            silence = check.names["mute.slow.example"] = asyncio.Event()
            with pytest.raises(Closed, match="for 2000 ms"):
                await check.addresses.find("mute.slow.example")
            silence.set()
            await loop_turns()
            with pytest.raises(Closed) as closed:
                await check.addresses.find("mute.slow.example")
            assert (closed.value.reason, closed.value.failure) == ("", "dns")
            check.clock.advance(3_600_000)

    run(tmp_path, redis_url, story)


def test_addresses_of_a_network_may_be_opened(tmp_path: Path, redis_url: str) -> None:
    """BIGCRAWL_ALLOW_ADDRESSES opens what it names, and nothing beside it."""

    async def story(check: Check) -> None:
        assert await check.addresses.find("10.1.2.3") == "10.1.2.3"
        with pytest.raises(Closed, match="refused-address"):
            await check.addresses.find("10.2.0.1")

    run(tmp_path, redis_url, story, allow_private_addresses=False, allow_addresses=["10.1.0.0/16"])


def test_dns_that_fails_is_no_missing_name(tmp_path: Path, redis_url: str) -> None:
    """Where DNS gives no answer the host has failed, and its URLs wait: an outage ends none of them."""

    async def story(check: Check) -> None:
        for _ in range(6):
            with pytest.raises(Closed) as closed:
                await check.addresses.find("slow.example")
            assert (closed.value.reason, closed.value.failure) == ("", "dns")
            check.clock.advance(3_600_000)
        check.names["slow.example"] = ["192.0.2.8"]
        assert await check.addresses.find("slow.example") == "192.0.2.8"

    run(tmp_path, redis_url, story)


def test_url_that_comes_back_early_has_not_been_tried_again(tmp_path: Path, redis_url: str) -> None:
    """A URL may be taken half a second before its host is due: only questions count as failures."""

    async def story(check: Check) -> None:
        for _ in range(2):
            for early in range(5):
                with pytest.raises(Closed) as closed:
                    await check.addresses.find("slow.example")
                assert (closed.value.reason, closed.value.failure) == ("", "" if early else "dns")
                check.clock.advance(closed.value.retry_ms // 2)
            check.clock.advance(3_600_000)
        assert "failed_lookups=1" in repr(check.addresses)
        check.names["slow.example"] = ["192.0.2.8"]
        await check.addresses.find("slow.example")
        assert "failed_lookups=0" in repr(check.addresses)

    run(tmp_path, redis_url, story)


def test_names_that_failed_are_remembered_up_to_a_number(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a web whose names all fail the last ones are kept; memory does not grow with it."""
    monkeypatch.setattr(address_check, "FAILED_LOOKUPS_KEPT", 3)

    async def story(check: Check) -> None:
        def failed(host: str) -> str:
            return check.addresses._after_failed_lookup(host, DnsError(host, "slow", 1_000, 1)).failure

        hosts = [f"h{number}.example" for number in range(10)]
        assert [failed(host) for host in hosts] == ["dns"] * 10
        assert "failed_lookups=3" in repr(check.addresses)
        assert [failed(host) for host in hosts[-3:]] == ["", "", ""], "the same failures, told already"
        assert failed(hosts[0]) == "dns"

    run(tmp_path, redis_url, story)


def test_names_that_a_proxy_resolves_have_no_address(tmp_path: Path, redis_url: str) -> None:
    """They pass at once, known or not; an address in a URL is checked as ever. A nameless crawl asks for none."""

    async def story(check: Check) -> None:
        assert await check.addresses.find("far.no.example") == check.addresses.known("far.no.example") == ""
        assert await check.addresses.find("near.example") == "192.0.2.1"
        with pytest.raises(Closed, match="refused-address"):
            await check.addresses.find("10.0.0.1")

    async def nameless(check: Check) -> None:
        with pytest.raises(Closed, match="for 10000 ms"):
            await check.addresses.find("far.example")

    closed = {"server_delay": 5, "allow_private_addresses": False, "allow_addresses": "192.0.2.0/24"}
    run(tmp_path, redis_url, story, resolves_here=IS_NEAR, contact="tests@bigcrawl.org", **closed)
    run(tmp_path, redis_url, nameless, resolves_here=IS_NEAR, **closed)


def test_answer_that_came_during_a_standstill_is_no_silence(tmp_path: Path, redis_url: str) -> None:
    """Wherever the process stood still for longer than a name is waited for: its URL need not come back for it."""
    clock = ManualClock()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        async with connected(redis_url) as client:
            check = Check(tmp_path, client)
            for turns in range(1, 12):
                loop.stand_still(turns, 2 * WAIT_MS_MAX)
                assert await check.addresses.find(f"h{turns}.example") == ADDRESS

    run_stepped(clock, scenario())
