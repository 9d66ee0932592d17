"""What new hosts cost the budget of their PLD: nobody but who makes up hosts pays, and who does pays for each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.scheduler.budgets.placement import (
    FREE_HOSTS,
    OVER_BUDGET,
    RECORD,
    NewHosts,
    TurnWindow,
    place_urls,
    place_with_hosts,
)
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from tests.support.worlds.partition_world import PartitionWorld, SetBudgets, make_url, pld_of

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 10
TURNS = 30
OPEN = TurnWindow(first=1, last=4, generation=1, is_rereading=False, quantum=1)
LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000)


def placed(first: list[bool], *, hosts_before: int = 0, budget: int = 4) -> tuple[list[int], int, int]:
    """URLs of one PLD, some on new hosts: turns, hosts of its record, how many are known from now on."""
    records = np.zeros(1, dtype=RECORD)
    records["hosts"] = hosts_before
    new = NewHosts(np.array(first), np.arange(len(first), dtype=np.uint64))
    whose = np.zeros(len(first), dtype=np.intp)
    found, known = place_with_hosts(new, whose, records, np.array([budget], dtype=np.uint32), OPEN, reread=False)
    return found.turns.tolist(), int(found.records["hosts"][0]), len(known)


def test_new_host_takes_two_places() -> None:
    """Its robots.txt and its page; another page of it one."""
    assert placed([True, False, True, False], hosts_before=FREE_HOSTS)[0] == [1, 1, 2, 2]


def test_first_hosts_cost_nothing() -> None:
    """All places are the pages', until the PLD has had so many hosts."""
    turns, hosts, _ = placed([True] * 6, hosts_before=FREE_HOSTS - 4)
    assert turns == [1] * 4 + [2] * 2
    assert hosts == FREE_HOSTS + 2


def test_host_is_known_when_its_robots_txt_has_a_place() -> None:
    """Of what is over budget nobody is asked: such a host pays when it passes."""
    turns, hosts, known = placed([True] * 20, hosts_before=FREE_HOSTS)
    assert turns == [1, 1, 2, 2, 3, 3, 4, 4] + [OVER_BUDGET] * 12
    assert (hosts, known) == (FREE_HOSTS + 8, 8)


def test_without_new_hosts_all_is_as_ever() -> None:
    whose, budgets = np.zeros(9, dtype=np.intp), np.array([2], dtype=np.uint32)
    records = np.zeros(1, dtype=RECORD)
    expected = place_urls(whose, records, budgets, OPEN, reread=False)
    new = NewHosts(np.zeros(9, dtype=np.bool_), np.zeros(9, dtype=np.uint64))
    found, _ = place_with_hosts(new, whose, records, budgets, OPEN, reread=False)
    assert found.turns.tolist() == expected.turns.tolist()
    assert (found.records == expected.records).all()


def fetched(world: PartitionWorld) -> tuple[Counter[str], Counter[str]]:
    """Pages of each PLD, and robots.txt files."""
    pages = Counter(pld_of(url.host) for url in world.admitted)
    return pages, Counter(pld_of(host) for host in {url.host for url in world.admitted})


@pytest.mark.parametrize("free", [FREE_HOSTS, 10**9], ids=["as it is", "if hosts were free"])
def test_farm_of_new_hosts_has_half_the_fetches_and_sites_have_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    """Its budget, and what it has beyond, is of pages and robots.txt together; sites of three hosts see no difference.

    3,000 URLs, a host each, beside ten sites: when those have had 300 pages each, the farm has 640 fetches, not 1,240.
    """
    monkeypatch.setattr("bigcrawl.scheduler.budgets.placement.FREE_HOSTS", free)
    world, partition = PartitionWorld(), Partition.open(tmp_path, 1, LIMITS, budgets=SetBudgets(BUDGET), pld_of=pld_of)
    world.offer(make_url(i, f"h{i}.farm.example") for i in range(3_000))
    world.offer(make_url(10_000 + i, f"{'abc'[i // 10 % 3]}.s{i % 10}.example") for i in range(10 * BUDGET * TURNS))
    while partition.state.turns.state.turn < TURNS:
        world.step(partition, room=20)
    pages, robots = fetched(world)
    farm = pages["farm.example"] + robots["farm.example"]
    sites = [pages[f"s{n}.example"] for n in range(10)]
    assert min(sites) >= BUDGET * TURNS - BUDGET
    assert {robots[f"s{n}.example"] for n in range(10)} == {3}
    share = robots["farm.example"] / (robots.total() + pages.total())
    if free == FREE_HOSTS:
        assert farm <= 22 * TURNS
        assert share < 0.09
    else:
        assert farm >= 40 * TURNS
        assert share > 0.14
    partition._check()
