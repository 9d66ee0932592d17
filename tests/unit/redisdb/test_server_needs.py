"""A Redis that cannot keep a crawl is refused or said to be so, each with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.robots_policy import RobotsRules
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.scripts import Identity
from bigcrawl.redisdb.server_needs import bytes_needed, check_server_needs, faults_of
from bigcrawl.scheduler.records.member import order_of, pack_member
from tests.support.redis_servers.client_runs import append, run
from tests.support.redis_servers.redis_cluster import free_ports
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until
from tests.unit.redisdb.test_client_calls import claim
from tests.unit.scheduler.world import queued

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

ROBOTS = RobotsRules.parse(b"User-agent: *\nDisallow: /cgi-bin/\nDisallow: /search\nDisallow: /private/\n", "bigcrawl")
GOOD = {"maxmemory": str(20 << 20), "maxmemory_policy": "noeviction", "aof_enabled": "1", "role": "master"}


def test_server_as_the_operations_page_has_it_lacks_nothing() -> None:
    """Nor does one of which nothing is known."""
    assert faults_of(GOOD, 1_000) == []
    assert faults_of({}, 1 << 40) == []


def test_server_that_loses_urls_when_all_is_well_is_refused() -> None:
    """The error names what is wrong and what to do."""
    with pytest.raises(ConfigError, match="maxmemory-policy noeviction"):
        faults_of({**GOOD, "maxmemory_policy": "allkeys-lru"}, 0)


@pytest.mark.parametrize(
    ("info", "remedy"),
    [
        ({"maxmemory_policy": "volatile-ttl"}, "maxmemory-policy noeviction"),
        ({"maxmemory": "0", "maxmemory_policy": "allkeys-lfu"}, "maxmemory-policy noeviction"),
        ({"aof_enabled": "0"}, "appendonly yes"),
        ({"maxmemory": str((20 << 20) - 1)}, "maxmemory 20mb"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_server_that_may_lose_them_is_told_of(info: dict[str, str], remedy: str) -> None:
    """In one line."""
    [fault] = faults_of({**GOOD, **info}, 20 << 20)
    assert remedy in fault
    assert "\n" not in fault


def test_real_server_is_read() -> None:
    """As Debian ships it, without AOF; and with a policy that evicts."""
    with PrivateRedis(aof=False) as server:

        async def work(client: RedisClient) -> None:
            [fault] = await check_server_needs(client, 0)
            assert "AOF" in fault
            server.client.config_set("maxmemory-policy", "allkeys-random")
            server.client.config_set("maxmemory", "100mb")
            with pytest.raises(ConfigError, match="allkeys-random"):
                await check_server_needs(client, 0)

        run(server.url, work)


def test_estimate_covers_what_a_crawl_holds() -> None:
    """Measured in a real server: no less than it takes, and no more than twice that."""
    urls, records, robots = 4_000, 4_000, ROBOTS.to_bytes()

    async def work(client: RedisClient) -> None:
        await client.ping()
        keys = [PartitionKeys("crawl", number) for number in range(64)]
        who = [Identity("n", (await client.run([claim(one, "n")]))[0].epoch, 1) for one in keys]
        for at, (one, owner) in enumerate(zip(keys, who, strict=True)):
            hosts = [f"www{number}.example{number % 97}.org" for number in range(at, urls, len(keys))]
            found = queued(*(f"http://{host}/library/path/item-{at}.html" for host in hosts))
            rows = [(url.host, order_of(0, seq), pack_member(seq, url)) for seq, url in enumerate(found)]
            robots_calls = [
                scripts.put_robots(one, host, f"robots:http://{host}", robots, 86_400_000, 2 * records)
                for host in hosts
            ]
            await client.run([scripts.admit_urls(one, owner, 1, b"", 1, rows), *robots_calls])
            await client.run([append(one, 1)])
        server.client.memory_purge()
        taken = server.client.info("memory")["used_memory"]
        needed = bytes_needed(
            partitions=len(keys),
            hot_urls=urls,
            host_records=records,
            robots_bytes=0,
            dns_answers=0,
            inbox_urls=len(keys),
        )
        assert needed / 2 < taken <= needed

    with PrivateRedis() as server:
        run(server.url, work)


def test_read_only_replica_is_refused_with_the_address_of_its_master() -> None:
    """While its master answers it stays one; without, it may be made the master, so a node waits for a while."""
    [port] = free_ports(1)
    with PrivateRedis(options={"bind": "127.0.0.1", "port": str(port)}) as master, PrivateRedis() as replica:
        replica.client.replicaof("127.0.0.1", port)
        wait_until(lambda: replica.client.info("replication").get("master_link_status") == "up", "a full copy")

        async def is_refused(client: RedisClient) -> None:
            with pytest.raises(ConfigError, match=f"set the URL to the master .*127.0.0.1:{port}"):
                await check_server_needs(client, 0)

        async def is_waited_for(client: RedisClient) -> None:
            with pytest.raises(RedisRefusedError, match="set the URL to the master"):
                await check_server_needs(client, 0)

        async def is_writable(client: RedisClient) -> None:
            with pytest.raises(ConfigError, match=r"writable replica.*the master's address"):
                await check_server_needs(client, 0)

        run(replica.url, is_refused)
        master.stop()
        wait_until(lambda: replica.client.info("replication")["master_link_status"] == "down", "the master's end")
        run(replica.url, is_waited_for)
        replica.client.config_set("replica-read-only", "no")
        run(replica.url, is_writable)
