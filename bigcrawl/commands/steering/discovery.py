"""`scrapy frontier discovery [on | off]`: stop queueing links, and drain what waits; queue them again.

Source: PolyBot §3.2 and §4.1, whose crawls were ended so.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import DISCOVERY, Discovery

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config


def discovery(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Say whether links are queued; with `off` or `on`, decide it, in force on every node within a second.

    Raises:
        ConfigError: the crawl does not exist, or the word is another one; nothing was changed.
        TransientStoreError: Redis does not answer; the order may have been given, and may be repeated.
    """
    if words and words[0] not in ("on", "off"):
        raise ConfigError(f"discovery is on or off, and not {words[0]!r}")
    with server_of(config) as server:
        data = asyncio.run(_discovery(config, server, words[0] if words else ""))
    return Result(data, discovery_text(data))


async def _discovery(config: Config, server: str, word: str) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        now = await read_discovery(crawl)
        wanted = _ordered(now, word, crawl.client.now_ms())
        if wanted != now:
            key = CrawlKeys(config.crawl.name).control
            await crawl.client.command("HSET", key, DISCOVERY, wanted.field())
        return discovery_data(wanted)


def _ordered(now: Discovery, word: str, now_ms: int) -> Discovery:
    """What it is after the word; no change if it is so already."""
    if word == "off" and now.is_on:
        return Discovery(is_on=False, off_from_ms=now_ms)
    if word == "on" and not now.is_on:
        return Discovery(is_on=True, off_from_ms=now.off_from_ms, off_until_ms=now_ms)
    return now


async def read_discovery(crawl: OpenedCrawl) -> Discovery:
    """Return whether links are queued.

    Raises:
        TransientStoreError: Redis does not answer.
    """
    return Discovery.from_field(
        await crawl.client.command("HGET", CrawlKeys(crawl.config.crawl.name).control, DISCOVERY)
    )


def discovery_data(discovery: Discovery) -> dict[str, Any]:
    """Return the same for programs: times in ISO 8601 with zone, None for what never was, or is not over."""
    return {
        "is_on": discovery.is_on,
        "off_from": _time(discovery.off_from_ms),
        "off_until": _time(discovery.off_until_ms),
    }


def discovery_text(data: dict[str, Any]) -> str:
    """Return it as a sentence."""
    if not data["is_on"]:
        return f"discovery is off since {data['off_from']}: links found since are not queued"
    if data["off_from"] is None:
        return "discovery is on"
    return f"discovery is on; links found from {data['off_from']} to {data['off_until']} were not queued"


def _time(time_ms: int) -> str | None:
    return datetime.fromtimestamp(time_ms // 1000, UTC).isoformat().replace("+00:00", "Z") if time_ms else None
