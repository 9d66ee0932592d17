from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.node.control import DRAINED
from bigcrawl.views.opened_crawl import ids_of, in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

WAIT_S = 60.0
_LOOK_S = 0.5


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every node, also those that start meanwhile")


def drain(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Ask nodes to end, and wait until they have; their URLs and partitions go to other nodes.

    With --all the crawl is shut down; the usual command that starts it continues it. Takes some seconds, until running
    fetches have ended. Raises ConfigError if a node has not ended within a minute.
    """
    if bool(words) == opts.all:
        raise ConfigError("drain needs either nodes, or --all for every node")
    nodes = in_crawl(config, _drain_nodes, words)
    return Result({"drained": nodes}, "\n".join(f"the node has ended: {node}" for node in nodes) or "no node runs")


async def _drain_nodes(crawl: OpenedCrawl, words: Sequence[str]) -> list[str]:
    control = crawl.crawl_keys.control
    living = await crawl.nodes()
    meant = {word: ids_of(word, living) for word in words}
    if unknown := [word for word in words if not meant[word]]:
        raise ConfigError(f"no node {unknown[0]!r} runs; there are: {', '.join(sorted(living)) or 'none'}")
    asked: set[str] = set()
    wanted = {node for ids in meant.values() for node in ids} if words else living
    until = time.monotonic() + WAIT_S
    while left := wanted & living:
        if time.monotonic() > until:
            raise ConfigError(f"nodes were asked to end, but still run after {WAIT_S:g} s: {', '.join(sorted(left))}")
        for node in sorted(left - asked):
            await crawl.client.command("HSET", control, DRAINED + node, "1")
        asked |= left
        await asyncio.sleep(_LOOK_S)
        living = await crawl.nodes()
        wanted |= set() if words else living
    for node in asked:
        await crawl.client.command("HDEL", control, DRAINED + node)
    return sorted(asked)
