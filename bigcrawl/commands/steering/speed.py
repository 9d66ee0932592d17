"""`scrapy frontier speed [TEXT]`: show and change the speed of the whole crawl.

A plan set here is stored in Redis, replaces the settings' plan on every node within a second, and survives restarts
until `--unset` removes it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.speed_plan import parse_speed
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import PAUSED, SPEED, ControlHash

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config

_WHERE = "scrapy frontier speed"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that removes the speed set by hand."""
    parser.add_argument("--unset", action="store_true", help="go back to the settings' speed")


def speed(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the speed in force; set another plan if one is given.

    Raises:
        ConfigError: the crawl does not exist, or the text is not a speed plan; nothing was changed.
        TransientStoreError: Redis does not answer.
    """
    text = " ".join(words)
    unset = bool(getattr(opts, "unset", False))
    if text and unset:
        raise ConfigError("--unset takes the speed set by hand away; leave it out, or the speed")
    parse_speed(text, config.pace.time_zone, _WHERE)
    with server_of(config) as server:
        data = asyncio.run(_speed(config, server, text, unset=unset))
    return Result(data, speed_text(data))


async def _speed(config: Config, server: str, text: str, *, unset: bool) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        key = CrawlKeys(config.crawl.name).control
        if text:
            await crawl.client.command("HSET", key, SPEED, text)
        elif unset:
            await crawl.client.command("HDEL", key, SPEED)
        return await read_speed(crawl)


async def read_speed(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return the speed in force and where it comes from."""
    control = ControlHash(crawl.client, crawl.config.crawl.name)
    await control.read()
    return speed_of(crawl.config, control.fields, control.now_ms)


def speed_of(config: Config, orders: Mapping[str, bytes], now_ms: int) -> dict[str, Any]:
    """Return the speed in force at a time, and where it comes from; `orders` are the fields of the control hash."""
    pace = config.pace
    by_hand = orders.get(SPEED)
    plan = parse_speed(pace.speed if by_hand is None else by_hand.decode(), pace.time_zone, "the crawl's speed")
    now = plan.at(now_ms)
    return {
        "now": str(now),
        "pages_per_s": now.pages if now.pages < float("inf") else None,
        "bytes_per_s": now.body_bytes if now.body_bytes < float("inf") else None,
        "paused": sorted(name[len(PAUSED) + 1 :] for name in orders if name.partition(":")[0] == PAUSED),
        "by_hand": None if by_hand is None else by_hand.decode(),
        "settings": pace.speed,
        "time_zone": pace.time_zone,
    }


def speed_text(data: dict[str, Any]) -> str:
    """Return the result as text."""
    rows = {
        "now": data["now"],
        "by hand": data["by_hand"] if data["by_hand"] is not None else "nothing is set",
        "settings": data["settings"] or "no limit",
        "time zone": data["time_zone"],
    }
    if data["paused"]:
        rows["paused"] = ", ".join(f"node {name}" if name else "the whole crawl" for name in data["paused"])
    return "\n".join(["the whole crawl", *(f"  {name:<11}{text}" for name, text in rows.items())])
