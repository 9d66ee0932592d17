"""`scrapy frontier budget NAME`: a PLD's budget, where it comes from, and rules that are set while a crawl runs."""

from __future__ import annotations

import argparse
import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bigcrawl.commands.steering.budget import budget, budget_options, budget_text
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
from bigcrawl.scheduler.crawl.crawl_record import open_record
from bigcrawl.scheduler.partition.fold.seen import edge_keys
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.rules.budget_rules import read_live_rules
from tests.support.keys import partition_of, pld_key
from tests.support.worlds.partition_world import SetBudgets
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient

RULES = {"ruled.example": {"budget": 7, "depth": 3}}


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    budget_options(parser)
    return parser.parse_args(words)


@asynccontextmanager
async def begun(config: Config) -> AsyncIterator[RedisClient]:
    """A crawl that has its record, and nothing else."""
    assert config.crawl.redis_url is not None
    async with connected(config.crawl.redis_url) as client:
        await open_record(client, config.crawl)
        yield client


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    made = make_config(tmp_path, crawl_name, redis_url, budget_policy="proportional", budget_rules=RULES)

    async def begin() -> None:
        async with begun(made):
            pass

    asyncio.run(begin())
    return made


def ask(config: Config, name: str, *words: str) -> dict[str, Any]:
    answer = budget(config, [name], options(*words))
    assert answer.status == 0
    json.dumps(answer.data)
    assert answer.text == budget_text(answer.data)
    return answer.data


def live(config: Config) -> dict[str, dict[str, int]]:
    """The rules in Redis as a node reads them."""

    async def read() -> dict[bytes, bytes]:
        assert config.crawl.redis_url is not None
        async with connected(config.crawl.redis_url) as client:
            return dict(pairs_of(await client.command("HGETALL", CrawlKeys(config.crawl.name).rules)))

    rules, faults = read_live_rules(asyncio.run(read()))
    assert not faults
    return rules


def test_budget_follows_from_the_in_degree(config: Config) -> None:
    """What the partition has counted, its rank among what all have published, and what the policy makes of it."""
    pld = "linked.example"
    number = partition_of(pld, config.crawl.partitions)
    partition = Partition.open(config.crawl.crawl_dir / f"p{number:04d}", 1, PartitionLimits(), budgets=SetBudgets(10))
    edges = np.array([(source, pld_key(pld)) for source in range(1, 6)], dtype="<u8")
    assert len(set(edge_keys(edges).tolist())) == 5
    partition.step([InboxEntry("1-1", b"", edges.tobytes())], 0, {})

    async def publish() -> None:
        async with begun(config) as client:
            counts = InDegreeCounts.of(np.array([5, 9, 9, 1], dtype=np.uint32)).to_bytes()
            await client.command("HSET", CrawlKeys(config.crawl.name).in_degrees, number, counts)

    found = ask(config, "www.linked.example")
    assert (found["in_degree"], found["rank_at_worst"]) == (5, None)
    assert "5 other PLDs link to linked.example; ranks are counted twice a minute, and not yet" in budget_text(found)
    asyncio.run(publish())
    found = ask(config, "www.linked.example")
    assert (found["pld"], found["in_degree"], found["budget_by_policy"]) == (pld, 5, 50)
    assert (found["rank_at_worst"], found["ranked_plds"]) == (3, 4)
    assert found["limits"] == {}
    text = budget_text(found)
    assert "5 other PLDs link to linked.example, at worst number 3 of 4" in text
    assert "proportional: 50 URLs a turn" in text


def test_pld_of_a_partition_without_a_step_has_no_in_links(config: Config) -> None:
    """Its files are made by the first step, so none can be elsewhere."""
    found = ask(config, "new.example")
    assert (found["in_degree"], found["budget_by_policy"]) == (0, 10)
    assert found["files"] == {"directory": None, "store": None}
    assert "files are not here" not in budget_text(found)


def test_rule_is_set_changed_and_taken_away(config: Config) -> None:
    """Limit by limit, by any spelling of the name; nodes read the same."""
    assert ask(config, "a.example")["rule_by_hand"] is None
    assert ask(config, "A.Example", "--urls", "500")["limits"] == {"budget": {"value": 500, "rule": "a.example"}}
    found = ask(config, "a.example", "--pages", "9000", "--depth", "4")
    assert found["rule_by_hand"] == {"budget": 500, "pages": 9_000, "depth": 4}
    assert live(config) == {"a.example": {"budget": 500, "pages": 9_000, "depth": 4}}
    assert "in force   budget 500 (rule a.example), pages 9,000" in budget_text(found)
    found = ask(config, "a.example", "--unset")
    assert (found["rule_by_hand"], found["limits"], live(config)) == (None, {}, {})


def test_rule_by_hand_stands_on_that_of_the_settings(config: Config) -> None:
    """It begins with the limits of the settings, replaces them, and can lift them."""
    found = ask(config, "ruled.example")
    assert (found["rule_of_settings"], found["rule_by_hand"]) == ({"budget": 7, "depth": 3}, None)
    found = ask(config, "ruled.example", "--urls", "0")
    assert found["rule_by_hand"] == {"budget": 0, "depth": 3}
    assert found["limits"]["budget"]["value"] == 0
    found = ask(config, "ruled.example", "--unset")
    assert (found["rule_by_hand"], found["limits"]) == ({}, {})
    assert "no limit, in spite of the settings" in budget_text(found)


def test_pattern_has_a_rule_and_no_budget_of_its_own(config: Config) -> None:
    """What is said of many PLDs is not said of one in-degree."""
    found = ask(config, "re:/calendar/", "--pages", "10")
    assert found["rule_by_hand"] == {"pages": 10}
    assert "in_degree" not in found
    assert ask(config, "*.blog.example", "--bytes", "1000")["rule_by_hand"] == {"bytes": 1_000}


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("http://a.example/", (), "must be a host"),
        ("a.example", ("--urls", "-1"), "whole number from 0"),
        ("a.example", ("--urls", "5", "--unset"), "--unset removes the whole rule"),
    ],
)
def test_what_is_no_rule_is_refused(config: Config, name: str, words: tuple[str, ...], message: str) -> None:
    """Told in one line, and nothing is changed."""
    with pytest.raises(ConfigError, match=message):
        ask(config, name, *words)
    assert live(config) == {}
