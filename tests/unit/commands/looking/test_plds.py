"""`scrapy frontier plds`: which PLDs have most pages, over all nodes, and what is known of each."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bigcrawl.commands.looking.sites import plds, plds_options, plds_text
from bigcrawl.features.tallies.tallies import PLDS_MAX, Tallies
from bigcrawl.features.traps.fold import Traps
from bigcrawl.features.traps.verdicts import TrapRules, pack_same_content
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.views import counted
from bigcrawl_report.command import report
from tests.support.keys import partition_of, pld_key
from tests.support.worlds.partition_world import SetBudgets
from tests.unit.commands.steering.test_budget import begun
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config

SETTINGS = {
    "budget_policy": "proportional",
    "budget_rules": {"ruled.example": {"budget": 7}},
    "trap_share": 0.5,
    "trap_divisor": 5,
}


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    return make_config(tmp_path, crawl_name, redis_url, **SETTINGS)


def tallies_of(pages: dict[str, int], page_bytes: int = 1_000) -> bytes:
    tallies = Tallies()
    for name, count in pages.items():
        for _ in range(count):
            tallies.record_page(f"www.{name}", name, "192.0.2.1", page_bytes)
    return tallies.to_bytes()


def count(config: Config, **nodes: bytes) -> None:
    """Put what nodes have counted into Redis."""

    async def put() -> None:
        async with begun(config) as client:
            for node, data in nodes.items():
                await client.command("HSET", CrawlKeys(config.crawl.name).tallies, node, data)
            published = InDegreeCounts.of(np.array([5, 9, 9, 1], dtype=np.uint32)).to_bytes()
            await client.command("HSET", CrawlKeys(config.crawl.name).in_degrees, 0, published)

    asyncio.run(put())


LIMITS = PartitionLimits(features=(Traps(TrapRules(share=0.5, divisor=5)),))


def fold(config: Config, pld: str, in_degree: int, *, same: int = 0) -> None:
    """Commit so many links to a PLD, and that so many of its last 64 pages are the same."""
    number = partition_of(pld, config.crawl.partitions)
    partition = Partition.open(config.crawl.crawl_dir / f"p{number:04d}", 1, LIMITS, budgets=SetBudgets(10))
    edges = np.array([(source, pld_key(pld)) for source in range(1, in_degree + 1)], dtype="<u8")
    outcomes = pack_same_content(pld_key(pld), same) if same else b""
    partition.step([InboxEntry("1-1", b"", edges.tobytes(), outcomes=outcomes)], 0, {})
    partition.committed.make_durable()


def ask(config: Config, *words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    plds_options(parser)
    answer = plds(config, [], parser.parse_args(words))
    assert answer.status == 0
    json.dumps(answer.data)
    assert answer.text == plds_text(answer.data)
    return answer.data


def test_pages_of_all_nodes_are_counted_together(config: Config) -> None:
    """Most pages first, or most bytes; so many as are asked for; shares are of all pages."""
    count(
        config,
        one=tallies_of({"a.example": 3, "b.example": 2}),
        two=tallies_of({"b.example": 2, "c.example": 3}, 9_000),
    )
    found = ask(config)
    assert [(row["pld"], row["pages"], row["bytes"]) for row in found["plds"]] == [
        ("b.example", 4, 20_000),
        ("a.example", 3, 3_000),
        ("c.example", 3, 27_000),
    ]
    assert (found["pages"], found["unreadable"]) == (10, 0)
    assert "   40.0%" in plds_text(found)
    assert [row["pld"] for row in ask(config, "--sort", "bytes", "--limit", "2")["plds"]] == ["c.example", "b.example"]
    assert len(ask(config, "--limit", "0")["plds"]) == 1


def test_budget_is_that_in_force_and_says_what_sets_it(config: Config) -> None:
    """The policy's, from the in-degree in the partition's files; less for a trap; a rule goes before both."""
    begun_in = {
        partition_of(name, config.crawl.partitions) for name in ("linked.example", "trap.example", "ruled.example")
    }
    names = (f"away{number}.example" for number in range(100))
    away = next(name for name in names if partition_of(name, config.crawl.partitions) not in begun_in)
    count(config, one=tallies_of({"linked.example": 3, "trap.example": 2, "ruled.example": 1, away: 1}))
    fold(config, "linked.example", 5)
    fold(config, "trap.example", 5, same=60)
    fold(config, "ruled.example", 1)
    found = {row["pld"]: row for row in ask(config)["plds"]}
    wanted = ("in_degree", "budget", "budget_set_by")
    assert {pld: tuple(row[name] for name in wanted) for pld, row in found.items()} == {
        "linked.example": (5, 50, "policy"),
        "trap.example": (5, 10, "trap"),
        "ruled.example": (1, 7, "rule ruled.example"),
        away: (None, None, None),
    }
    assert found["linked.example"]["rank"] == 3
    text = plds_text(ask(config))
    assert "  10 (trap)\n" in text
    assert "  7 (rule ruled.example)" in text


def test_what_cannot_be_read_is_left_out_and_told(config: Config) -> None:
    """A node of a later version hides only its own pages; without any, one line says when there will be some."""
    count(config)
    assert plds_text(ask(config)) == "no page is counted yet; nodes send their counts every ten seconds"
    count(config, one=tallies_of({"a.example": 1}), two=b"of a later version")
    found = ask(config)
    assert ([row["pld"] for row in found["plds"]], found["unreadable"]) == (["a.example"], 1)
    assert plds_text(found).endswith("the counts of 1 node cannot be read by this version")


def test_nothing_was_counted_where_no_feature_counts(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing and the report say so, and are no failures; there are no files of a report."""
    count(config, one=tallies_of({"a.example": 1}))
    monkeypatch.setattr(counted, "modules_of", lambda _part: ())
    assert plds_text(ask(config)) == counted.NOTHING
    directory = tmp_path / "report"
    answer = report(config, [str(directory)], argparse.Namespace())
    assert (answer.status, answer.text, answer.data) == (0, counted.NOTHING, {"files": []})
    assert not directory.exists()


def test_list_is_bounded(config: Config) -> None:
    """However many PLDs there are and are asked for; the share is of all pages all the same."""
    names = {f"pld{number}.example": 1 for number in range(3 * PLDS_MAX)}
    count(config, one=tallies_of({"most.example": 5, **names}))
    found = ask(config, "--limit", "1000000")
    assert len(found["plds"]) <= PLDS_MAX
    assert (found["plds"][0]["pld"], found["pages"]) == ("most.example", 3 * PLDS_MAX + 5)
