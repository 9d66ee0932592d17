"""Calls on a Redis Cluster: each finds its master, also when slots move and masters die."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from redis.crc import key_slot

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import PartitionKeys, all_keys
from bigcrawl.redisdb.reply_errors import RedisRefusedError, RedisRestartedError
from bigcrawl.redisdb.server_needs import check_server_needs
from tests.support.redis_servers.client_runs import append, opened, run
from tests.support.redis_servers.redis_cluster import PrivateCluster
from tests.support.running.processes import wait_until
from tests.unit.redisdb.test_client_calls import claim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.redisdb.client import RedisClient
    from tests.support.redis_servers.redis_cluster import Server

PARTITIONS = 60


@pytest.fixture
def partitions(crawl_name: str) -> list[PartitionKeys]:
    return [PartitionKeys(crawl_name, number) for number in range(PARTITIONS)]


@pytest.fixture
def own_cluster() -> Iterator[PrivateCluster]:
    """Three masters with a replica each, to be killed."""
    with PrivateCluster(replicas=True) as cluster:
        yield cluster


def home_of(cluster: PrivateCluster, keys: PartitionKeys) -> Server:
    slot = key_slot(keys.owner.encode())
    return next(
        master
        for master in cluster.masters
        for first, last, (_, port, *_), *_ in master.client.execute_command("CLUSTER SLOTS")
        if first <= slot <= last and port == master.port
    )


def test_calls_of_many_partitions_find_their_masters(
    redis_cluster: PrivateCluster, partitions: list[PartitionKeys]
) -> None:
    """In one round trip; those of each partition in their order."""

    async def work(client: RedisClient) -> None:
        calls = [append(keys, number) for number in (1, 2, 3) for keys in partitions]
        assert await client.run(calls) == [True] * len(calls)
        lengths = await client.commands([("XLEN", keys.inbox) for keys in partitions])
        assert lengths == [3] * PARTITIONS
        claims = await client.run([claim(keys) for keys in partitions])
        assert all(each.epoch == 1 for each in claims)

    run(redis_cluster.url, work)
    homes = {home_of(redis_cluster, keys).port for keys in partitions}
    assert len(homes) == len(redis_cluster.masters), "the test means all masters"


def test_nodes_on_different_masters_tell_the_same_time(redis_cluster: PrivateCluster) -> None:
    async def work() -> None:
        url = redis_cluster.url.rpartition(":")[0]
        async with opened(redis_cluster.url) as one, opened(f"{url}:{redis_cluster.masters[2].port}") as other:
            await one.run([])
            await other.run([])
            assert one.server_run_id == other.server_run_id
            assert one.now_ms() == pytest.approx(other.now_ms(), abs=500)

    asyncio.run(work())


def test_all_keys_of_a_crawl_are_found_on_all_masters(
    redis_cluster: PrivateCluster, partitions: list[PartitionKeys], crawl_name: str
) -> None:
    async def work(client: RedisClient) -> None:
        await client.run([append(keys, 1) for keys in partitions])
        found = {key async for some in client.keys(all_keys(crawl_name), 100) for key in some}
        assert {keys.inbox.encode() for keys in partitions} <= found

    run(redis_cluster.url, work)


def test_each_master_is_looked_at_for_faults(redis_cluster: PrivateCluster) -> None:
    """One that evicts is told, whichever it is."""
    client = redis_cluster.masters[1].client

    async def work(client: RedisClient) -> None:
        assert any("volatile-lru" in fault for fault in await check_server_needs(client, 0))

    client.config_set("maxmemory-policy", "volatile-lru")
    try:
        run(redis_cluster.url, work)
    finally:
        client.config_set("maxmemory-policy", "noeviction")


def test_slot_that_has_moved_is_followed(own_cluster: PrivateCluster, partitions: list[PartitionKeys]) -> None:
    """Nothing is forgotten by that, so nothing has to be compared; on its way, its calls are refused or follow it."""
    keys = partitions[0]

    async def work(client: RedisClient) -> None:
        slot, source = key_slot(keys.owner.encode()), home_of(own_cluster, keys)
        target = next(master for master in own_cluster.masters if master is not source)
        assert await client.run([append(keys, 1)]) == [True]
        own_cluster.move_slot(slot, source, target, end=False)
        [while_moving] = await client.run_each([append(keys, 2)])
        assert while_moving is True or isinstance(while_moving, RedisRefusedError)
        own_cluster.move_slot(slot, source, target)
        results = await client.run_each([append(each, 2) for each in partitions])
        assert [each for each in results if isinstance(each, Exception)] == []
        assert await client.command("XLEN", keys.inbox) == 2
        assert target.client.xlen(keys.inbox) == 2

    run(own_cluster.url, work)


def test_command_for_a_key_that_has_gone_ahead_of_its_slot_is_sent_where_it_is(
    own_cluster: PrivateCluster, partitions: list[PartitionKeys]
) -> None:
    """ASK: the old master of a slot on its way refers to the new one, for this command alone, which takes it there."""
    keys = partitions[0]

    async def work(client: RedisClient) -> None:
        slot, source = key_slot(keys.owner.encode()), home_of(own_cluster, keys)
        target = next(master for master in own_cluster.masters if master is not source)
        await client.run([])
        own_cluster.move_slot(slot, source, target, end=False)
        asked, refused = calls_of(target, "asking"), source.client.info("errorstats").get("errorstat_ASK", {})
        await client.command("HSET", keys.state, "field", "value")
        assert calls_of(target, "asking") == asked + 1
        assert source.client.info("errorstats")["errorstat_ASK"]["count"] == refused.get("count", 0) + 1
        assert await client.command("HGET", keys.state, "field") == b"value"
        own_cluster.move_slot(slot, source, target)
        assert target.client.hget(keys.state, "field") == "value"

    run(own_cluster.url, work)


def calls_of(server: Server, command: str) -> int:
    """How often a server has carried out a command."""
    return int(server.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0))


def test_replica_that_took_over_counts_as_restarted(
    own_cluster: PrivateCluster, partitions: list[PartitionKeys]
) -> None:
    """Also for a client whose URL names the dead master. What the replica has received is there afterwards."""

    async def work(client: RedisClient) -> None:
        await client.run([append(keys, 1) for keys in partitions])
        before = client.server_run_id
        assert before
        written = own_cluster.masters[0].client.info("replication")["master_repl_offset"]
        heir = own_cluster.replicas[0].client
        wait_until(lambda: heir.info("replication")["slave_repl_offset"] >= written, "the replica has all")
        own_cluster.fail_over(0)
        for _ in range(2):  # a connection that breaks, then a server that nobody has met
            with pytest.raises(TransientStoreError):
                await client.run([append(keys, 2) for keys in partitions])
        with pytest.raises(RedisRestartedError):
            await client.run([append(keys, 2) for keys in partitions])
        await client.accept_restart()
        assert client.server_run_id not in ("", before)
        await client.run([append(keys, 2) for keys in partitions])
        assert await client.commands([("XLEN", keys.inbox) for keys in partitions]) == [2] * PARTITIONS

    run(own_cluster.url, work)


def test_master_without_replica_is_away_until_it_is_back(
    own_cluster: PrivateCluster, partitions: list[PartitionKeys]
) -> None:
    """Its calls fail as those of a server that is away; the others' masters go on."""
    away = own_cluster.masters[1]

    async def work(client: RedisClient) -> None:
        await client.run([append(keys, 1) for keys in partitions])
        own_cluster.replicas[1].process.kill()
        away.process.kill()
        away.process.wait()
        there = [keys for keys in partitions if home_of_live(keys) is not away]
        for _ in range(3):
            with pytest.raises(TransientStoreError):
                await client.run([append(keys, 2) for keys in partitions])
        results = await client.run_each([append(keys, 3) for keys in there[:1]])
        assert len(results) == 1

    homes = {keys.partition: home_of(own_cluster, keys) for keys in partitions}

    def home_of_live(keys: PartitionKeys) -> Server:
        return homes[keys.partition]

    run(own_cluster.url, work)


def test_scripts_are_loaded_on_every_master(own_cluster: PrivateCluster, partitions: list[PartitionKeys]) -> None:
    """Before anything is called there, and again where they were flushed."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        loaded = [master.client.info("memory")["number_of_cached_scripts"] for master in own_cluster.masters]
        assert min(loaded) == max(loaded) > 20
        for master in own_cluster.masters:
            master.client.script_flush()
        assert await client.run([append(keys, 1) for keys in partitions]) == [True] * PARTITIONS

    run(own_cluster.url, work)
