"""`scrapy frontier drain NODE...`: end nodes from anywhere, as SIGTERM would on their machines."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bigcrawl.commands.opened_crawl import ids_of, opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import DRAINED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

WAIT_S = 60.0
_LOOK_S = 0.5


def drain(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Ask nodes to end, and wait until they have: what they hold goes back, their partitions go to others.

    Cost: some seconds, for what is under way.

    Raises:
        ConfigError: the crawl does not exist, there is no such node, or one has not ended within a minute.
        TransientStoreError: Redis does not answer; nodes may have been asked.
    """
    with server_of(config) as server:
        nodes = asyncio.run(_drain(config, server, words))
    return Result({"drained": nodes}, "\n".join(f"has ended: {node}" for node in nodes))


async def _drain(config: Config, server: str, words: Sequence[str]) -> list[str]:
    control = CrawlKeys(config.crawl.name).control
    async with opened(config, server) as crawl:
        living = await crawl.nodes()
        meant = {word: ids_of(word, living) for word in words}
        if unknown := [word for word in words if not meant[word]]:
            raise ConfigError(f"no node {unknown[0]!r} runs; there are: {', '.join(sorted(living)) or 'none'}")
        nodes = sorted({node for ids in meant.values() for node in ids})
        await crawl.client.commands([("HSET", control, DRAINED + node, "1") for node in nodes])
        until = time.monotonic() + WAIT_S
        while left := sorted(set(nodes) & await crawl.nodes()):
            if time.monotonic() > until:
                raise ConfigError(f"asked to end, and not gone after {WAIT_S:g} s: {', '.join(left)}")
            await asyncio.sleep(_LOOK_S)
        await crawl.client.commands([("HDEL", control, DRAINED + node) for node in nodes])
    return nodes
