"""Hosts and directories of shared domains have budgets of their own once enough PLDs link to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgpack
import numpy as np
import pytest

from bigcrawl.scheduler.budgets.allowances import EffectiveBudgets
from bigcrawl.scheduler.budgets.policies import UnlimitedBudgets
from bigcrawl.scheduler.budgets.units import BudgetUnits
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.rules.budget_rules import RuleBook
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import PartitionWorld, SetBudgets, make_edges, make_url, pld_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000)
HOMES = "www.homes.example"
UNITS = BudgetUnits(("*.blogs.example", f"{HOMES}/~"), 3, pld_of, pld_key, pld_of)
LINKS = {"ann.blogs.example": 3, "bob.blogs.example": 2, f"{HOMES}/~ann/": 4}


def linked(unit: str, plds: int) -> bytes:
    """Edges from so many PLDs to a unit."""
    target = UNITS.key_of(unit).to_bytes(8, "little")
    return b"".join(pld_key(f"linking{number}.example").to_bytes(8, "little") + target for number in range(plds))


def url_at(number: int, host: str, path: str) -> QueuedUrl:
    return make_url(number, host)._replace(body=msgpack.packb([f"http://{host}{path}", 0, None]))


def first_turn(directory: Path, units: BudgetUnits | None, links: Mapping[str, int] = LINKS) -> Counter[str]:
    """How many URLs the first turn has, of each host, and of each directory of the other domain."""
    world = PartitionWorld()
    partition = Partition.open(directory, 1, LIMITS, budgets=SetBudgets(5), pld_of=pld_of, pld_key=pld_key)
    partition.sources.set_units(units)
    world.offer([], b"".join(linked(unit, plds) for unit, plds in links.items()))
    world.step(partition, room=0)
    hosts = ("ann.blogs.example", "bob.blogs.example", *(f"farm{number}.blogs.example" for number in range(10)))
    world.offer(url_at(1_000 * at + n, host, f"/{n}") for n in range(20) for at, host in enumerate(hosts, 1))
    homes = ("~ann", "~bob", "else")
    world.offer(
        url_at(90_000 + 1_000 * at + n, HOMES, f"/{home}/{n}") for n in range(20) for at, home in enumerate(homes)
    )
    for room in range(1, 40):
        world.step(partition, room=1)
        if partition.state.turns.state.turn or len(world.admitted) < room:
            break
    partition._check()
    in_turn = world.admitted[:-1] if partition.state.turns.state.turn else world.admitted
    return Counter(url.host if url.host != HOMES else msgpack.unpackb(url.body)[0].split("/")[3] for url in in_turn)


def test_a_unit_with_enough_links_has_a_budget_of_its_own(tmp_path: Path) -> None:
    """All other hosts and directories of its domain share the domain's, however many there are."""
    found = first_turn(tmp_path / "p0000", UNITS)
    assert found.pop("ann.blogs.example") == 5
    assert found.pop("~ann") == 5
    assert found.pop("~bob", 0) + found.pop("else", 0) == 5
    assert found.total() == 5
    assert set(found) <= {"bob.blogs.example", *(f"farm{number}.blogs.example" for number in range(10))}


@pytest.mark.parametrize(("units", "links"), [(None, LINKS), (UNITS, {"ann.blogs.example": 2})])
def test_without_units_or_links_a_domain_has_one_budget(
    tmp_path: Path, units: BudgetUnits | None, links: dict[str, int]
) -> None:
    assert first_turn(tmp_path / "p0000", units, links).total() == 10


def test_units_do_not_count_in_ranks(tmp_path: Path) -> None:
    """Otherwise hosts that a farm makes up would make the top larger, and bring the farm into it."""
    world = PartitionWorld()
    partition = Partition.open(tmp_path / "p0000", 1, LIMITS, budgets=SetBudgets(5), pld_of=pld_of, pld_key=pld_key)
    partition.sources.set_units(UNITS)
    pairs = [(f"linking{number}.example", "blogs.example") for number in range(4)]
    world.offer([], make_edges(pairs) + b"".join(linked(f"farm{n}.blogs.example", 4) for n in range(50)))
    world.step(partition, room=0)
    assert partition.state.in_degrees.total == 1
    assert partition.in_degrees(np.array([UNITS.key_of("farm7.blogs.example")], dtype=np.uint64)).tolist() == [4]


@pytest.mark.parametrize("before", [None, UNITS])
def test_counts_hold_when_units_are_set_or_removed(tmp_path: Path, before: BudgetUnits | None) -> None:
    """A key that looks like a unit's is never counted, so it is never missing where it leaves."""
    target = 3 << 16
    world = PartitionWorld()
    partition = Partition.open(tmp_path / "p0000", 1, LIMITS, budgets=SetBudgets(5), pld_of=pld_of, pld_key=pld_key)
    for turn, units in enumerate((before, None, UNITS, None)):
        partition.sources.set_units(units)
        sources = (pld_key(f"linking{2 * turn + each}.example") for each in range(2))
        world.offer([], b"".join(source.to_bytes(8, "little") + target.to_bytes(8, "little") for source in sources))
        world.step(partition, room=0)
    assert partition.in_degrees(np.array([target], dtype=np.uint64)).tolist() == [8]
    assert partition.state.in_degrees.total == 0


def test_a_budget_set_by_hand_is_that_of_the_whole_domain(tmp_path: Path) -> None:
    by_hand = EffectiveBudgets(
        UnlimitedBudgets(), RuleBook({"blogs.example": {"budget": 7}}, pld_of, pld_key), lambda body: ("", 0)
    )
    partition = Partition.open(tmp_path / "p0000", 1, LIMITS, budgets=by_hand, pld_of=pld_of, pld_key=pld_key)
    partition.sources.set_units(UNITS)
    world = PartitionWorld()
    world.offer((make_url(n, "ann.blogs.example") for n in range(40)), linked("ann.blogs.example", 5))
    world.step(partition, room=1)
    assert partition.state.turns.by_turn[0] == 6
