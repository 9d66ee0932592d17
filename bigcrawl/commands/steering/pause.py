"""`scrapy frontier pause` and `resume`: stop fetching for a while: the crawl, a node, a host or a PLD.

A paused crawl or node keeps all that it has, ends what is under way, and starts nothing. A host or PLD that is paused
is on the blacklist: its URLs are withheld on disk until it is resumed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import ids_of, opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.blacklist import change_blacklist
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import PAUSED
from bigcrawl.scheduler.rules.blacklist import parse_entries

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config


def pause(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Pause the crawl, or what is named: nodes, hosts, PLDs; in force on every node within a second.

    Raises:
        ConfigError: the crawl does not exist, or a name is invalid; nothing was changed.
        TransientStoreError: Redis does not answer.
    """
    return _change(config, words, on=True)


def resume(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Let the crawl, or what is named, go on.

    What was not paused makes the exit status 1. Raises as `pause`.
    """
    return _change(config, words, on=False)


def _change(config: Config, words: Sequence[str], *, on: bool) -> Result:
    with server_of(config) as server:
        changed, unchanged = asyncio.run(_carry_out(config, server, words, on=on))
    did, had = ("paused", "was paused before") if on else ("goes on", "was not paused")
    lines = [f"{did}: {each}{_hint(each)}" for each in changed] + [f"{had}: {each}{_hint(each)}" for each in unchanged]
    data: dict[str, Any] = {"changed": changed, "unchanged": unchanged}
    return Result(data, "\n".join(lines), 1 if unchanged and not on else 0)


def _hint(name: str) -> str:
    """Say of a name without a dot what it was taken for: it may be a node's, misspelled."""
    return "" if set(name) & set(" .:") else ", as a host; no node of this name runs"


async def _carry_out(config: Config, server: str, words: Sequence[str], *, on: bool) -> tuple[list[str], list[str]]:
    async with opened(config, server) as crawl:
        nodes = await _nodes(crawl)
        meant = {word: ids_of(word, nodes) for word in words}
        verb = "pause" if on else "resume"
        sites = parse_entries([word for word in words if not meant[word]], f"scrapy frontier {verb}")
        fields = {f"node {node}": f"{PAUSED}:{node}" for word in words for node in meant[word]}
        if not words:
            fields = {f"crawl {config.crawl.name}": PAUSED}
        changed: list[str] = []
        unchanged: list[str] = []
        for name, field in fields.items():
            key = CrawlKeys(config.crawl.name).control
            order = ("HSET", key, field, "1") if on else ("HDEL", key, field)
            (changed if await crawl.client.command(*order) else unchanged).append(name)
        if sites:
            moved = await change_blacklist(crawl, sites, add=on)
            changed += sorted(moved)
            unchanged += sorted(sites - moved)
    return changed, unchanged


async def _nodes(crawl: OpenedCrawl) -> set[str]:
    """The nodes that live, and those that are paused."""
    control = CrawlKeys(crawl.config.crawl.name).control
    fields = [name.decode() for name in await crawl.client.command("HKEYS", control)]
    return await crawl.nodes() | {
        field.removeprefix(f"{PAUSED}:") for field in fields if field.startswith(f"{PAUSED}:")
    }
