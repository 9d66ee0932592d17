"""What a URL costs in memory: in Redis while it is hot, in a node while it waits to be sent.

Held fixed: URLs of about 55 bytes, plain links without a payload, a fresh server of the embedded kind.
Bytes are what the server's `used_memory` and Python's tracemalloc grow by.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import SystemClock
from bigcrawl.links import Links
from bigcrawl.politeness.robots_policy import RobotsRules
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.scripts import GrantedClaim, Identity
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.records.member import order_of, pack_member
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.url.key import PUBLIC_KEYS
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

pytestmark = pytest.mark.benchmark

URLS = 100_000  # twice the default of BIGCRAWL_HOT_URLS
RECORDS = 20_000
ADMITTED_AT_ONCE = 1_000  # as an owner does
ROBOTS = b"User-agent: *\nDisallow: /cgi-bin/\nDisallow: /search\nDisallow: /private/\nCrawl-delay: 2\n"


def host_name(number: int) -> str:
    return f"www{number}.example{number % 97}.org"


def queued_urls(hosts: int) -> list[QueuedUrl]:
    urls = [f"http://{host_name(i % hosts)}/library/path/item-{i}.html" for i in range(URLS)]
    encode = links_encoder(Links(()), 3)
    return [encode(PUBLIC_KEYS.of_url(url), url) for url in urls]


async def used_bytes(client: RedisClient) -> int:
    lines = (await client.command("INFO", "memory")).decode().splitlines()
    return int(dict(line.split(":", 1) for line in lines if ":" in line)["used_memory"])


async def admit(client: RedisClient, keys: PartitionKeys, urls: list[QueuedUrl]) -> None:
    claim = scripts.claim_partition(
        keys,
        node="n",
        token="t",  # noqa: S106 - what proves a node's death, no secret
        lease_ms=600_000,
        epoch_min=0,
        dead_token="",
        deadline_ms=1,
        abort_ms=0,
        forgotten_ms=0,
        delay_ms=1,
        generation=1,
    )
    [claimed] = await client.run([claim])
    assert isinstance(claimed, GrantedClaim)
    who = Identity("n", claimed.epoch, 1)
    for start in range(0, len(urls), ADMITTED_AT_ONCE):
        rows = [
            (url.host, order_of(0, seq), pack_member(seq, url))
            for seq, url in enumerate(urls[start : start + ADMITTED_AT_ONCE], start)
        ]
        await client.run([scripts.admit_urls(keys, who, start // ADMITTED_AT_ONCE + 1, b"", 1, rows)])


async def measure_redis(url: str) -> dict[str, float]:
    client = RedisClient(url)
    grown: dict[str, float] = {}
    for hosts, title in ((URLS // 100, "hot URL, 100 of each host"), (URLS, "hot URL, one of each host")):
        before = await used_bytes(client)
        await admit(client, PartitionKeys(f"bench{hosts}", 0), queued_urls(hosts))
        grown[title] = (await used_bytes(client) - before) / URLS
    keys, rules = PartitionKeys("bench", 0), RobotsRules.parse(ROBOTS, "bigcrawl").to_bytes()
    names = [host_name(i) for i in range(RECORDS)]
    before = await used_bytes(client)
    await client.run([scripts.put_robots(keys, n, f"robots:http://{n}", rules, 86_400_000, 2 * RECORDS) for n in names])
    grown["host record with three rules"] = (await used_bytes(client) - before) / RECORDS
    await client.close()
    return grown


def test_bytes_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints bytes a hot URL, a host record, a URL in the outbox, and a URL in an inbox batch."""
    with PrivateRedis() as server:
        grown = asyncio.run(measure_redis(server.url))
    urls = queued_urls(URLS // 100)
    batches = [encode_batch(urls[i : i + 2_000]) for i in range(0, URLS, 2_000)]
    grown["URL in an inbox batch"] = sum(map(len, batches)) / URLS
    del urls
    outbox = Outbox("n", "bench", 10 * URLS, SystemClock())
    tracemalloc.start()
    for url in queued_urls(URLS // 100):
        outbox.offer(url, 0)
    grown["URL in the outbox"] = tracemalloc.get_traced_memory()[0] / URLS
    tracemalloc.stop()
    assert outbox.waiting == URLS
    with capsys.disabled():
        print("", *(f"{title:.<40} {size:8,.0f} bytes" for title, size in grown.items()), sep="\n")  # noqa: T201
