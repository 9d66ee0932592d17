"""A block lease stands for the leases of a node's partitions in a block. A cluster's scripts do not see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import GrantedClaim, RefusedClaim
from tests.contract.test_scripts_ownership import left_ms, renew
from tests.support.redis_servers.script_world import LEASE_MS, T0, ScriptRunner, ScriptWorld
from tests.unit.redisdb.test_lua_contract import SCRIPT_NAMES

if TYPE_CHECKING:
    from tests.support.redis_servers.redis_server import PrivateRedis

HALF_MS = LEASE_MS // 2
DAY_MS = 86_400_000


@pytest.fixture
def four(redis_server: PrivateRedis, crawl_name: str) -> list[ScriptWorld]:
    """Partitions of node "a", with a block lease from the time of their claims."""
    runner = ScriptRunner(redis_server.client, SCRIPT_NAMES)
    worlds = [ScriptWorld(runner, crawl_name, partition) for partition in range(4)]
    for world in worlds:
        world.claim()
    assert renew(worlds, now_ms=T0 + 1) == []
    return worlds


def renew_block(worlds: list[ScriptWorld], now_ms: int, node: str = "a") -> bool:
    """Renew the block lease of the owners that the worlds know; whether no partition must be checked."""
    [keys] = {world.keys.leases for world in worlds}
    rows = [(world.keys.partition, world.who.epoch) for world in worlds]
    others = worlds[0].runner.run(scripts.renew_block_leases({keys: rows}, node, LEASE_MS, now_ms))
    assert others in ([], [keys])
    return not others


def claim_at(world: ScriptWorld, now_ms: int, node: str = "b") -> GrantedClaim | RefusedClaim:
    world.now_ms = now_ms
    return world.claim(node)


def all_left_ms(worlds: list[ScriptWorld], now_ms: int) -> list[int]:
    return [left_ms(world, now_ms) for world in worlds]


def test_block_lease_keeps_its_partitions_from_others(four: list[ScriptWorld]) -> None:
    """To its end, and as every reader sees it, although nothing is written to the partitions themselves."""
    before = [world.client.hgetall(world.keys.owner) for world in four]
    assert renew_block(four, T0 + HALF_MS)
    ends_ms = T0 + HALF_MS + LEASE_MS
    assert all_left_ms(four, ends_ms - 1) == [1] * 4
    assert [world.client.hgetall(world.keys.owner) for world in four] == before
    runner, keys = four[0].runner, [world.keys for world in four]
    assert runner.run(scripts.sum_partitions(keys, ends_ms - 1)).owners == {"a": 4}
    assert runner.run(scripts.sum_partitions(keys, ends_ms)).owners == {"a": 0}
    assert isinstance(claim_at(four[0], ends_ms - 1), RefusedClaim)
    assert isinstance(claim_at(four[0], ends_ms), GrantedClaim)


def test_loss_of_a_partition_is_found_by_the_next_renewal(four: list[ScriptWorld]) -> None:
    """However late that is; the others' leases go on, and that of the new owner is left alone."""
    mine = four[1].who
    ends_ms = T0 + 1 + LEASE_MS
    assert isinstance(claim_at(four[1], ends_ms), GrantedClaim)
    new, four[1].who = four[1].who, mine
    for sent_ms in (T0 + HALF_MS, ends_ms + 1):  # late by half a lease, and in time
        assert not renew_block(four, sent_ms)
        assert renew(four, now_ms=sent_ms) == [1]
        assert left_ms(four[1], ends_ms) == LEASE_MS
    del four[1]
    assert all_left_ms(four, ends_ms + 1) == [LEASE_MS] * 3
    assert renew_block(four, ends_ms + 2)
    assert new.epoch > mine.epoch


def test_renewal_whose_reply_was_lost_hides_no_loss(four: list[ScriptWorld]) -> None:
    """One sent before the loss and one after it arrive later, and are repeated."""
    mine = four[2].who
    ends_ms = T0 + 1 + LEASE_MS
    assert isinstance(claim_at(four[2], ends_ms), GrantedClaim)
    four[2].who = mine
    for sent_ms in (T0 + HALF_MS, T0 + HALF_MS, ends_ms + 1, ends_ms + 1):
        renew_block(four, sent_ms)
    assert not renew_block(four, ends_ms + HALF_MS)
    assert renew(four, now_ms=ends_ms + HALF_MS) == [2]


def test_renewal_that_is_late_or_repeated_makes_no_lease_shorter(four: list[ScriptWorld]) -> None:
    """Neither by its time nor by its partitions, if others were claimed since."""
    assert renew_block(four, T0 + HALF_MS)
    for sent_ms in (T0 + HALF_MS, T0 + 2):
        assert renew_block(four, sent_ms)
        assert renew(four[:1], now_ms=sent_ms) == []
        assert all_left_ms(four, T0 + HALF_MS) == [LEASE_MS] * 4


def test_partition_out_of_the_block_lease_has_its_own_lease_alone(four: list[ScriptWorld]) -> None:
    """Such as one whose claim was granted without an answer: it does not stay with a node that does not know of it."""
    later_ms = T0 + HALF_MS
    assert not renew_block(four[:3], later_ms)
    assert renew(four[:3], now_ms=later_ms) == []
    assert all_left_ms(four, later_ms) == [LEASE_MS] * 3 + [HALF_MS + 1]


def test_released_partition_is_free_and_out_of_the_block_lease(four: list[ScriptWorld]) -> None:
    """A node that never had the answer finds it with its next renewal, and one that had it renews all at once."""
    released = four[3]
    released.runner.run(scripts.release_partition(released.keys, released.who))
    assert not renew_block(four, T0 + HALF_MS)
    assert renew_block(four[:3], T0 + HALF_MS)
    assert renew(four, now_ms=T0 + HALF_MS) == [3]
    assert isinstance(claim_at(released, T0 + HALF_MS), GrantedClaim)


def test_partition_that_leaves_the_block_lease_keeps_its_end(four: list[ScriptWorld]) -> None:
    """Such as one that its node claims again only after others: until then its fetches go on."""
    assert renew_block(four, T0 + HALF_MS)
    later_ms = T0 + LEASE_MS
    assert renew(four[:2], now_ms=later_ms) == []
    assert all_left_ms(four, later_ms) == [LEASE_MS] * 2 + [HALF_MS] * 2
    assert isinstance(claim_at(four[3], later_ms), RefusedClaim)


def test_claimed_again_it_needs_a_new_block_lease(four: list[ScriptWorld]) -> None:
    """The lease of an earlier epoch stands for nothing, and a renewal in that epoch finds it."""
    before = four[0].who
    assert isinstance(claim_at(four[0], T0 + 2, "a"), GrantedClaim)
    claimed, four[0].who = four[0].who, before
    assert not renew_block(four, T0 + 3)
    assert renew(four, now_ms=T0 + 3) == [0]
    four[0].who = claimed
    assert not renew_block(four, T0 + 4)
    assert renew(four, now_ms=T0 + 4) == []
    assert renew_block(four, T0 + 5)


@pytest.mark.parametrize("forgotten", ["the block lease", "all"])
def test_what_redis_forgets_is_written_again(four: list[ScriptWorld], forgotten: str) -> None:
    """A partition that it does not know as owned is lost; nobody owns it, and any node may claim it."""
    client = four[0].client
    client.delete(four[0].keys.leases, *[world.keys.owner for world in four if forgotten == "all"])
    assert not renew_block(four, T0 + HALF_MS)
    assert renew(four, now_ms=T0 + HALF_MS) == ([0, 1, 2, 3] if forgotten == "all" else [])
    assert sum(left > 0 for left in all_left_ms(four, T0 + HALF_MS)) == (0 if forgotten == "all" else 4)
    assert sum(left > 0 for left in all_left_ms(four, T0 + HALF_MS)) == (0 if forgotten == "all" else 4)


def test_damaged_block_lease_counts_as_none(four: list[ScriptWorld]) -> None:
    """Whosever it is, and the next renewal of all puts it right."""
    client = four[0].client
    for damage in ("", "x", "12", " 0:1 ", "x 0:1 1:1 2:1 3:1 "):
        client.hset(four[0].keys.leases, "a", damage)
        assert min(all_left_ms(four, T0 + 1)) >= LEASE_MS
        assert not renew_block(four, T0 + 2)
        client.hset(four[0].keys.leases, "b", damage)
        assert renew(four, now_ms=T0 + 2) == []
        assert renew_block(four, T0 + 3)


def test_block_lease_of_a_node_that_is_long_gone_is_removed(four: list[ScriptWorld]) -> None:
    """A day after its end: until then it says when the fetches of its node had ended at the latest."""
    client, key = four[0].client, four[0].keys.leases
    for after_ms, left in ((DAY_MS, 2), (DAY_MS + 1, 1)):
        now_ms = T0 + 1 + LEASE_MS + after_ms
        four[0].now_ms = now_ms
        four[0].claim("b")
        assert renew(four[:1], "b", now_ms) == []
        assert len(client.hkeys(key)) == left
