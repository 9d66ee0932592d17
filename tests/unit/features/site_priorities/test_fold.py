"""Priorities that rules give to sites, in a partition with a prioritizer and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.features.site_priorities.fold import SitePriorities
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.budgets.allowances import make_budgets
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeRanks
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer, make_prioritizer
from bigcrawl.scheduler.records.body import address_or_none
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from bigcrawl.scheduler.rules.budget_rules import RuleBook, parse_rules
from tests.support.keys import pld_key, url_key
from tests.support.worlds.partition_world import PartitionWorld, pld_of

if TYPE_CHECKING:
    from pathlib import Path


LIMITS = PartitionLimits(host_hot_max=100, host_hot_low=100, features=(SitePriorities(),))
RULES = {
    "good.example": {"priority": 500},
    "good.example/old/": {"priority": -1},
    "bad.example": {"priority": -200},
    "plain.example": {"priority": 0},
    "*": {"depth": 9},
}
EXPECTED = {
    "http://good.example/": 500,
    "http://good.example/old/1": -1,
    "http://bad.example/": -200,
    "http://plain.example/": 0,
    "http://other.example/": 7,
}


def link(address: str, priority: int = 7) -> QueuedUrl:
    return links_encoder(Links([address], priority=priority), 1)(url_key(address), address)


@pytest.mark.parametrize("prioritizer", ["", "depth", "in-degree"])
def test_rule_has_the_last_word_on_a_priority(tmp_path: Path, prioritizer: str) -> None:
    """Whatever the spider says, or a prioritizer; 0 is ordinary, and a URL after a failed try stays behind."""
    config = read_config({"BIGCRAWL_BUDGET_POLICY": "none"}).budget
    budgets = make_budgets(config, EMPTY_COUNTS, RuleBook(parse_rules(RULES), pld_of, pld_key), address_or_none)
    partition = Partition.open(tmp_path / "p", 1, LIMITS, budgets=budgets, pld_of=pld_of, pld_key=pld_key)
    if (made := make_prioritizer(prioritizer)) is not None:
        partition.sources.set_prioritizing(SafePrioritizer(made, InDegreeRanks(EMPTY_COUNTS)))
    world = PartitionWorld()
    tried = link("http://good.example/tried")._replace(priority=-3, flags=UNCHECKED)
    world.offer([*map(link, EXPECTED), tried])
    world.step(partition, room=50)
    found = {address_or_none(url.body)[0]: url.priority for url in world.admitted}
    assert found.pop("http://good.example/tried") == -3
    assert next(iter(found)) == "http://good.example/"
    if prioritizer:  # which decides about what is ordinary
        found["http://plain.example/"] = 0
    assert found == EXPECTED
