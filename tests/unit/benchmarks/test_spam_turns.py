"""What farms were allowed: by the turns that were told, and by the files that partitions leave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.spam.even import even_share
from benchmarks.spam.turn_log import TurnLine, read_turns
from benchmarks.spam.turns import Account, accounts_of, shares_of
from bigcrawl.scheduler.crawl.crawl_record import RECORD_FILE
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from tests.support.keys import SECRET, partition_of, pld_key
from tests.support.worlds.partition_world import PartitionWorld, SetBudgets, make_edges, make_url, pld_of

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 2
FARM, OTHER = "bada-offers0.biz", "dofa-offers1.info"


def settings(policy: str) -> dict[str, Any]:
    return {"BIGCRAWL_PARTITIONS": PARTITIONS, "BIGCRAWL_BUDGET_POLICY": policy, "BIGCRAWL_BUDGET": 7}


def test_a_turn_counts_with_the_largest_quantum_until_it_ended() -> None:
    """Turn 0 with 1 and then 4, up to 3 with 4, up to 5 with 2, but 4 was before; one turn of another partition."""
    lines = [TurnLine(1, 0, 0, 1, 0), TurnLine(2, 0, 0, 4, 0), TurnLine(3, 0, 3, 4, 0), TurnLine(4, 0, 5, 2, 0)]
    assert shares_of([*lines, TurnLine(2, 1, 0, 1, 9)][::-1]) == {0: (6, 24), 1: (1, 1)}
    assert shares_of([]) == {}


def test_what_a_farm_was_allowed_is_its_budget_in_every_turn() -> None:
    assert Account(FARM, 0, in_degree=3, budget=10, turns=4, shares=6, fetched=50).allowed == 60


def test_in_degrees_and_budgets_are_those_of_the_partitions_files(tmp_path: Path) -> None:
    """Two farms in partitions of their own, three PLDs that point to one of them; most pages come first."""
    (tmp_path / RECORD_FILE).write_text(json.dumps({"hash_seed": SECRET.hex()}))
    plds = {FARM: partition_of(FARM, PARTITIONS), OTHER: partition_of(OTHER, PARTITIONS)}
    for partition in range(PARTITIONS):
        world = PartitionWorld()
        mine = [pld for pld in plds if plds[pld] == partition]
        edges = make_edges((f"{source}.example", FARM) for source in "abc") if FARM in mine else b""
        world.offer([make_url(number, f"x.{pld}") for number, pld in enumerate(mine)], edges)
        directory = tmp_path / f"p{partition:04d}"
        disk = Partition.open(directory, 1, PartitionLimits(), budgets=SetBudgets(5), pld_of=pld_of, pld_key=pld_key)
        disk.step(world.inbox, 10, {})
    lines = [TurnLine(1, partition, 0, 2, 0) for partition in range(PARTITIONS)]
    found = accounts_of(tmp_path, settings("star"), lines, {OTHER: 4, FARM: 19})
    assert found == [Account(FARM, plds[FARM], 3, 7, 1, 2, 19), Account(OTHER, plds[OTHER], 0, 7, 1, 2, 4)]
    assert accounts_of(tmp_path, settings("none"), lines, {OTHER: 4, FARM: 19}) == []


def test_an_even_share_is_the_least_that_brings_enough() -> None:
    """Of ten PLDs with one URL and one with ninety: one each are eleven, two twelve; all takes ninety."""
    sizes = [1] * 10 + [90]
    assert [even_share(sizes, share) for share in (0.1, 0.11, 0.12, 0.5, 1.0)] == [1, 1, 2, 40, 90]
    assert even_share([7], 0.5) == 4


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "turns.txt"
    file.write_text("5\t1\t2\t3\t4\n6\t1\t2")
    assert read_turns(file) == [TurnLine(5, 1, 2, 3, 4)]
