"""Look-ups by budget: what is asked of whom, and what a URL is told that must wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.scheduler.gates import address_check
from bigcrawl.scheduler.gates.address_check import LOOKUP_WAIT_MS_MAX, LookupLimits
from bigcrawl.scheduler.gates.interfaces import Closed
from tests.unit.scheduler.gates.parts import Gates
from tests.unit.scheduler.world import connected, make_config, queued, resolve, world

if TYPE_CHECKING:
    from pathlib import Path


class Budgets:
    """Budgets by PLD, and who was asked about."""

    def __init__(self, **budgets: int) -> None:
        self.budgets = budgets
        self.asked: list[str] = []

    def pld_of(self, host: str) -> str:
        return host.rpartition(".")[2]

    async def budget_of(self, host: str) -> int:
        self.asked.append(host)
        if self.pld_of(host) == "unread":
            raise TransientStoreError("not now")
        return self.budgets.get(self.pld_of(host), 10)


def passed(tmp_path: Path, pld: str, budgets: Budgets, count: int = 50, policy: str = "star", names: int = 4) -> int:
    """How many of so many new hosts of a PLD are looked up at once."""
    config = make_config(tmp_path, "crawl", budget_policy=policy, dns_pld_names=names)
    lookups = LookupLimits(config, ManualClock(), budgets.pld_of, budgets.budget_of)

    async def scenario() -> int:
        return [await lookups.take_turn(f"{number}.{pld}") for number in range(count)].count(0)

    return asyncio.run(scenario())


def test_names_are_in_proportion_to_the_budget(tmp_path: Path) -> None:
    """A PLD with ten times the least budget has ten times the names; one that cannot be read has the least."""
    budgets = Budgets(rich=100)
    assert passed(tmp_path, "poor", budgets) == 4
    assert passed(tmp_path, "unread", budgets) == 4
    assert passed(tmp_path, "rich", budgets) == pytest.approx(40, abs=4)


def test_budgets_are_not_asked_for_as_long_as_nobody_must_wait(tmp_path: Path) -> None:
    """They stand on disk."""
    budgets = Budgets()
    assert passed(tmp_path, "poor", budgets, count=4) == 4
    assert budgets.asked == []


def test_without_budgets_there_is_no_bound(tmp_path: Path) -> None:
    """With the policy `none`, and where the bound is 0."""
    assert passed(tmp_path, "poor", Budgets(), policy="none") == 50
    assert passed(tmp_path, "poor", Budgets(), names=0) == 50


def test_host_that_is_known_needs_no_turn(tmp_path: Path, redis_url: str) -> None:
    """Only new names count; who must wait is told for how long, ten minutes at most."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            clock, budgets = ManualClock(), Budgets()
            config = make_config(tmp_path, "crawl", dns_pld_names=1)
            lookups = LookupLimits(config, clock, budgets.pld_of, budgets.budget_of)
            dns = DnsCache(resolve, clock)
            addresses = Gates(config, client, clock, dns, lookups).addresses
            for _ in range(3):
                assert await addresses.find("a.farm") == "192.0.2.1"
                assert await addresses.find("192.0.2.7") == "192.0.2.7"
            waits = []
            for number in range(20):
                with pytest.raises(Closed) as closed:
                    await addresses.find(f"{number}.farm")
                assert not closed.value.reason
                waits.append(closed.value.retry_ms)
            assert waits[0] == pytest.approx(60_000, abs=2)
            assert waits[-1] == LOOKUP_WAIT_MS_MAX
            clock.advance(waits[0])
            assert await addresses.find("0.farm") == "192.0.2.1"

    asyncio.run(scenario())


def test_slow_name_takes_one_turn(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL that comes back while its name is still asked for does not use up another look-up of its PLD."""
    monkeypatch.setattr(address_check, "WAIT_MS_MAX", 5)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            clock, budgets, answered = ManualClock(), Budgets(), asyncio.Event()

            async def slow(host: str) -> list[str]:
                await answered.wait()
                return await resolve(host)

            config = make_config(tmp_path, "crawl", dns_pld_names=2)
            lookups = LookupLimits(config, clock, budgets.pld_of, budgets.budget_of)
            dns = DnsCache(slow, clock)
            addresses = Gates(config, client, clock, dns, lookups).addresses
            for _ in range(4):
                with pytest.raises(Closed, match="for 2000 ms"):
                    await addresses.find("slow.farm")
                clock.advance(10)
            answered.set()
            assert await addresses.find("other.farm") == "192.0.2.1"
            with pytest.raises(Closed, match=r"for \d{5} ms"):
                await addresses.find("third.farm")

    asyncio.run(scenario())


def test_farm_waits_in_its_queues_and_others_are_crawled(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node with a farm of names and another site: the farm gets its names, the site all its pages."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, dns_pld_names=3, host_hot_urls=50) as w:
            node = await w.joined()
            farm = [f"http://h{number}.farm.example/" for number in range(20)]
            for url in queued(*farm, *(f"http://www.good.org/{number}" for number in range(5))):
                node.offer(url)
            fetched = []
            for _ in range(10):
                for held in await w.take(node, 1):
                    fetched.append(held.host)
                    w.end(node, held)
            assert fetched.count("www.good.org") == 5
            assert len(fetched) == 5 + 3

    asyncio.run(scenario())
