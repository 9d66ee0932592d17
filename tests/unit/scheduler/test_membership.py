"""Who lives, who is provably dead, who should own what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.membership import Membership
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def members(tmp_path: Path, crawl_name: str) -> Iterator[list[Membership]]:
    """Three nodes of a crawl on one machine; their locks end with the test."""
    config = make_config(tmp_path, crawl_name)
    made = [Membership(config, f"node-{i}") for i in range(3)]
    yield made
    for member in made:
        member.unlock()


def test_living_node_is_not_dead(members: list[Membership]) -> None:
    """A node that holds its lock is alive, for the others and for itself."""
    first, second, _ = members
    first.lock()
    assert not second.is_dead(first.token)
    assert not first.is_dead(first.token)


def test_node_that_lost_its_lock_is_provably_dead(members: list[Membership]) -> None:
    """The kernel frees a killed process' lock; the file that stays behind proves the death."""
    first, second, _ = members
    first.lock()
    first.unlock(left=False)
    assert second.is_dead(first.token)


def test_nothing_is_proved_without_the_file_or_on_another_boot(members: list[Membership]) -> None:
    """No lock file, another machine or another boot: one must wait for the lease."""
    first, second, _ = members
    first.lock()
    first.unlock(left=False)
    _, _, node = first.token.partition(":")
    assert not second.is_dead(f"another-boot:{node}")
    assert not second.is_dead("")
    first.lock()
    first.unlock()
    assert not second.is_dead(first.token)


def test_asking_does_not_take_the_lock(members: list[Membership]) -> None:
    """Whoever asks for a death certificate leaves the lock to its node."""
    first, second, _ = members
    first.lock()
    first.unlock(left=False)
    assert second.is_dead(first.token)
    first.lock()
    assert not second.is_dead(first.token)


def test_state_directory_that_cannot_be_written_is_told(tmp_path: Path, crawl_name: str) -> None:
    """A file where the directory should be: one error with the setting's name, no traceback."""
    (tmp_path / crawl_name).write_text("in the way")
    with pytest.raises(ConfigError, match="BIGCRAWL_STATE_DIR"):
        Membership(make_config(tmp_path, crawl_name), "node").lock()


def test_dead_nodes_lose_their_share_at_once(members: list[Membership], crawl_name: str, redis_url: str) -> None:
    """The reports of provably dead nodes are left out, and removed for everybody."""

    async def scenario() -> None:
        first, second, third = members
        async with connected(redis_url) as client:
            for member in members:
                member.lock()
                await member.beat(client, {"token": member.token})
            await first.beat(client, {"token": first.token})
            assert sorted(first.reports) == [first.node, second.node, third.node]
            shares = [member.wanted() for member in members[:1]]
            third.unlock(left=False)
            await first.beat(client, {"token": first.token})
            assert sorted(first.reports) == [first.node, second.node]
            assert shares[0] < first.wanted()
            assert await client.command("HEXISTS", CrawlKeys(crawl_name).nodes, third.node) == 0

    asyncio.run(scenario())


def test_live_nodes_share_all_partitions_without_overlap(
    members: list[Membership], crawl_name: str, redis_url: str
) -> None:
    """Once all have heard of all, what they want are disjoint sets that cover everything."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            for _ in range(2):
                for member in members:
                    member.lock() if member._lock_fd is None else None
                    await member.beat(client, {"token": member.token})
            wanted = [member.wanted() for member in members]
            assert sorted(p for share in wanted for p in share) == list(range(4))
            await members[0].leave(client)
            await members[1].beat(client, {"token": members[1].token})
            assert members[0].node not in members[1].reports

    asyncio.run(scenario())


def test_repr_names_the_node_and_the_others(members: list[Membership]) -> None:
    """A log line shows who is who."""
    assert repr(members[0]) == "<Membership node-0 among []>"
