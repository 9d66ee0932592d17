"""Puts a frontier of many hosts into a Redis, with the product's own node and scripts.

A node begins the crawl and owns its partitions. Then the URLs are admitted by `admit_urls`, as an owner's step would,
but without having been on disk, where there is only the manifest that the first step would have begun. So the next
owner finds batches that its manifest does not know, and goes on behind them, as after a power failure.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgpack

from benchmarks.frontier.ours import make_node
from bigcrawl.clock import SystemClock
from bigcrawl.features.tallies.tallies import PLDS_MAX
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.history import COLUMNS, EVERY_MS, VERSION
from bigcrawl.scheduler.crawl.samples import ROWS_MAX
from bigcrawl.scheduler.owner.hot.hot_set import admit_call
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
from tests.support.observing import tallies_of
from tests.unit.scheduler.world import queued, resolve

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition

AT_ONCE: Final = 20_000  # hosts
OWNED_S_MAX: Final = 600.0
FIRST_SEQ: Final = 1 << 20  # beyond those of the steps that the node has made


async def fill(settings: dict[str, Any], url: str, hosts: int) -> None:
    """Begin the crawl of `settings`, and put hosts of one URL each into its back queues, due at once.

    It also has the longest history that is kept, and the counts of a node with pages of more PLDs than are kept.

    Raises:
        RuntimeError: the node does not own its partitions after ten minutes.
    """
    client = RedisClient(url)
    node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: False)
    try:
        await node.start()
        await _own_all(node, settings["BIGCRAWL_PARTITIONS"])
        await node.runner.stop()
        for start in range(0, hosts, AT_ONCE):
            await _admit(node, client, range(start, min(start + AT_ONCE, hosts)))
        tallies = tallies_of(node)
        for number in range(2 * PLDS_MAX):
            for _ in range(1 + number % 7):
                tallies.record_page(f"www.example{number}.com", f"example{number}.com", "192.0.2.1", 20_000)
        await _write_history(client, settings["BIGCRAWL_CRAWL"])
    finally:
        await node.departure.close()
        await client.close()


async def _own_all(node: Node, partitions: int) -> None:
    deadline = time.monotonic() + OWNED_S_MAX
    while len(node.ownership.owned) < partitions:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the node owns {len(node.ownership.owned)} of {partitions} partitions")
        await asyncio.sleep(0.2)


async def _admit(node: Node, client: RedisClient, numbers: range) -> None:
    """Admit the URLs of some hosts, a batch for each partition."""
    by_partition: dict[int, list[Any]] = {}
    for url in queued(*(f"http://www.example{number}.com/" for number in numbers)):
        by_partition.setdefault(node.crawl.partition_of_host(url.host), []).append(url)
    for partition, urls in by_partition.items():
        owned: OwnedPartition = node.ownership.owned[partition]
        owned.disk.committed.begin()
        owned.admissions.confirmed += 1
        batch = AdmitBatch(owned.admissions.confirmed, FIRST_SEQ + numbers.start, urls)
        await client.run([admit_call(owned.keys, owned.identity, batch, 1)])


async def _write_history(client: RedisClient, crawl: str) -> None:
    now = client.now_ms() // EVERY_MS
    rows: list[Any] = []
    for at in range(ROWS_MAX):
        number = now - (ROWS_MAX - at) * 60
        values = [10**6 * at + at % 7 * 10**5] * len(COLUMNS)
        rows += [str(number), msgpack.packb([VERSION, number * EVERY_MS, *values])]
    await client.command("HSET", CrawlKeys(crawl).history, *rows)
