"""`python -m benchmarks.takeover.node SETTINGS`: a node that says when it owns all partitions, and runs until killed.

On its standard output: a line `owned TIME` when it has opened all partitions, and `fetched TIME` when its first page
has ended, in seconds of the machine's monotonic clock. Fetches take no time, and pages have no links.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import uvloop

from benchmarks.backlog.state import PARTITIONS
from benchmarks.frontier.ours import make_node
from bigcrawl.clock import SystemClock
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.loops.memory import tame_memory
from bigcrawl.url.key import HASH_SEED
from tests.unit.scheduler.world import resolve

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.node import Node

LOOK_S: Final = 0.01


def main() -> None:
    """Run until killed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        tame_memory()
        runner.run(_run(json.loads(sys.argv[1])))


async def _run(settings: dict[str, Any]) -> None:
    client = RedisClient(settings["BIGCRAWL_REDIS_URL"])
    node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: True)
    # The keys on disk, made before the crawl, are those of one without a secret.
    await client.command("HSETNX", CrawlKeys(node.config.crawl.name).crawl, "hash_seed", HASH_SEED)
    looking = asyncio.ensure_future(_say_when_all_are_owned(node))
    node.handout.wake_engine = lambda: None
    await node.start()
    while (held := node.handout.buffer.pop()) is None:
        node.pump.wake()
        await asyncio.sleep(LOOK_S)
    held.outcome = "status:200"
    node.handout.fetches.end(held)
    _say("fetched")
    await looking
    await asyncio.Event().wait()


async def _say_when_all_are_owned(node: Node) -> None:
    while len(node.ownership.owned) < PARTITIONS:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(LOOK_S)
    _say("owned")


def _say(what: str) -> None:
    sys.stdout.write(f"{what} {time.monotonic()}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
