"""A partition that begins no further host while enough are under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.features.whole_hosts.fold import WholeHosts
from bigcrawl.features.whole_hosts.spider_middlewares import raised_priority
from bigcrawl.scheduler.partition.fold.feature import features_of
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import PartitionWorld, make_url, pld_of

if TYPE_CHECKING:
    from pathlib import Path


def open_with(directory: Path, at_once: int) -> Partition:
    limits = PartitionLimits(host_hot_max=10, host_hot_low=10, features=(WholeHosts(at_once),))
    return Partition.open(directory, 1, limits, pld_of=pld_of, pld_key=pld_key)


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_host_begins_when_another_has_ended(tmp_path: Path, at_once: int) -> None:
    """However much room there is, and in the order of the entries; a host that is away counts for nothing."""
    world, partition = PartitionWorld(), open_with(tmp_path / "p", at_once)
    hosts = [f"{name}.example" for name in "abcdef"]
    world.offer(make_url(number, host) for number, host in enumerate(hosts))
    world.step(partition, room=50)
    assert [url.host for url in world.admitted] == hosts[:at_once]
    world.step(partition, room=50)
    assert len(world.admitted) == at_once
    world.hot["a.example"] = 0
    world.hot += {}
    world.step(partition, room=50)
    assert [url.host for url in world.admitted] == hosts[: at_once + 1]
    world.away = dict.fromkeys(world.hot, 1)
    world.step(partition, room=50)
    assert [url.host for url in world.admitted] == hosts[: 2 * at_once + 1]


def test_links_within_hosts_come_before_further_hosts(tmp_path: Path) -> None:
    """Also where the host had no URL in Redis for a moment, and whoever had waited longer."""
    world, partition = PartitionWorld(), open_with(tmp_path / "p", 1)
    world.offer(make_url(number, f"entry{number}.example") for number in range(5))
    world.offer(make_url(number, "met.example", raised_priority(0)) for number in range(10, 13))
    world.step(partition, room=50)
    assert [url.host for url in world.admitted] == ["met.example"] * 3
    world.offer(make_url(number, "met.example", raised_priority(-5)) for number in range(20, 23))
    world.step(partition, room=50)
    assert [url.host for url in world.admitted] == ["met.example"] * 6


def test_number_is_of_the_crawl_and_at_least_one_for_each_partition() -> None:
    """Off, there is no feature in the steps."""
    for at_once, partitions, each in ((0, 8, 0), (3, 8, 1), (8, 8, 1), (40, 8, 5)):
        config = read_config({"BIGCRAWL_WHOLE_HOSTS": at_once, "BIGCRAWL_PARTITIONS": partitions})
        found = [one.hosts_at_once for one in features_of(config) if isinstance(one, WholeHosts)]
        assert found == ([each] if each else [])
