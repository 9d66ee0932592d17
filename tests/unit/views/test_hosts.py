"""Lists of hosts, the pages of a host and of a site: what they say, and how many commands they cost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from benchmarks.watching.counting_link import CountingLink
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.views import hosts as hosts_module
from bigcrawl.views.hosts import STATES, HostQuery, list_hosts
from bigcrawl.views.opened_crawl import OpenedCrawl, open_crawl
from bigcrawl.views.site import read_host_data, read_pld_data
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.redis_servers.redis_cluster import PrivateCluster

PARTITIONS = 1_024
COMMANDS_MAX = 5
DUE_S = 100_000
FAR_S = 2_000


def with_partitions(crawl: OpenedCrawl, partitions: int) -> OpenedCrawl:
    return OpenedCrawl(crawl.config, crawl.client, partitions, crawl.suffixes, crawl.url_keys)


async def fill(crawl: OpenedCrawl, hosts: int) -> None:
    """Hosts of all states in the partitions where they belong, none of which falls due in the next half hour."""
    now_ms, rows = crawl.client.now_ms(), list[tuple[Any, ...]]()
    due_s = random.Random(1).sample([*range(-DUE_S, 0), *range(FAR_S, DUE_S)], hosts)
    for number in range(hosts):
        host = f"www.h{number}.example"
        keys = crawl.keys(crawl.place_of(f"http://{host}/").partition)
        due_ms = now_ms + 1_000 * due_s[number]
        kind = number % 20
        if kind == 0:
            rows.append(("HSET", keys.busy, host, 1 + number % 3))
        elif kind == 1:  # as a host that is snoozed and has URLs in Redis
            later_ms = now_ms + 1_000 * FAR_S + 10 * number
            rows += [("ZADD", keys.snoozed, later_ms, host), ("ZADD", keys.ready, later_ms, host)]
        elif kind == 2:
            rows.append(("ZADD", keys.snoozed, RETIRED_MS + now_ms + number, host))
        else:
            rows.append(("ZADD", keys.ready, due_ms, host))
        rows.append(("ZADD", keys.back + host, 1, b"1:a", 2, b"2:b"))
        rows.append(("HSET", keys.host + host, "delay", 7_000, "failures", number % 4, "why", "error:dns"))
    for start in range(0, len(rows), 5_000):
        await crawl.client.commands(rows[start : start + 5_000])


def order(rows: list[dict[str, Any]]) -> list[Any]:
    """What is the same in both ways of listing: which of many busy hosts are listed is not."""
    return [(row["state"], row["host"] if row["state"] != "busy" else "") for row in rows]


@awaited
async def test_first_hosts_are_those_of_a_walk_through_all(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each state, and on each page of the list."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        await w.joined()
        async with open_crawl(w.config, redis_url) as opened:
            crawl = with_partitions(opened, 16)
            await fill(crawl, 1_000)
            for state in ("", *STATES):
                for first, limit in ((0, 12), (24, 12), (0, 300), (990, 100)):
                    wanted = HostQuery("", state, "due", first, limit)
                    found = await list_hosts(crawl, wanted)
                    with monkeypatch.context() as patched:
                        patched.setattr(hosts_module, "LISTED_MAX", 0)
                        walked = await list_hosts(crawl, wanted)
                    assert order(found["hosts"]) == order(walked["hosts"]), (state, first, limit)
                    assert found["is_whole"]
                    assert len({row["host"] for row in found["hosts"]}) == len(found["hosts"])
            [row] = (await list_hosts(crawl, HostQuery("www.h7.example", "", "due", 0, 5)))["hosts"]
            assert {**row, "due_in_s": 0, "state": ""} == {
                "host": "www.h7.example",
                "state": "",
                "due_in_s": 0,
                "queued": 2,
                "taken": 0,
                "rest_s": 7.0,
                "failures": 3,
                "why": "error:dns",
            }


@awaited
async def test_views_of_hosts_send_few_commands_however_many_partitions_there_are(
    tmp_path: Path, crawl_name: str
) -> None:
    """Counted on their way to Redis, with the question for the time."""
    with PrivateRedis(aof=False) as server, CountingLink(server.socket_path) as link:
        async with world(tmp_path, crawl_name, server.url) as w:
            node = await w.joined()
            for url in queued("http://www.h3.example/1", "http://www.h3.example/2"):
                node.offer(url)
            await w.turn(node)
            async with open_crawl(w.config, link.url) as opened:
                crawl = with_partitions(opened, PARTITIONS)
                await fill(crawl, 5_000)
                views = {
                    "hosts": lambda: list_hosts(crawl, HostQuery("", "", "due", 0, 12)),
                    "last page": lambda: list_hosts(crawl, HostQuery("", "waiting", "due", 1_000, 12)),
                    "host": lambda: read_host_data(opened, "www.h3.example"),
                    "pld": lambda: read_pld_data(opened, "h3.example"),
                }
                sent = {}
                for name, view in views.items():
                    await view()  # scripts are loaded
                    crawl.client._crawl_clock._ask_ms = 0  # a second is over
                    before = link.commands
                    data = await view()
                    sent[name] = link.commands - before
                    assert data
    assert {name for name, count in sent.items() if not 0 < count <= COMMANDS_MAX} == set(), sent


@awaited
async def test_views_of_hosts_are_the_same_on_a_cluster(
    tmp_path: Path, crawl_name: str, redis_cluster: PrivateCluster
) -> None:
    """Where each partition may be on another master."""
    async with world(tmp_path, crawl_name, redis_cluster.url) as w:
        await w.joined()
        async with open_crawl(w.config, redis_cluster.url) as crawl:
            await fill(crawl, 100)
            found = await list_hosts(crawl, HostQuery("", "", "due", 10, 20))
            assert (len(found["hosts"]), found["is_whole"]) == (20, True)
            assert len((await list_hosts(crawl, HostQuery("", "retired", "due", 0, 20)))["hosts"]) == 5
            assert (await read_host_data(crawl, "www.h3.example"))["queued"] == 2
            [row] = (await read_pld_data(crawl, "h3.example"))["hosts"]
            assert row["host"] == "www.h3.example"
