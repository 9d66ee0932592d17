"""`scrapy frontier discovery [on | off]`. Source: PolyBot §3.2 and §4.1, whose crawls ended in this way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.node.control import DISCOVERY, Discovery
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.orders import discovery_data, read_discovery

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl


def discovery(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show whether links are queued; with `off` or `on`, change it on every node within a second."""
    if words and words[0] not in ("on", "off"):
        raise ConfigError(f"discovery must be on or off, but is {words[0]!r}")
    data = in_crawl(config, _change_discovery, words[0] if words else "")
    return Result(data, discovery_text(data))


async def _change_discovery(crawl: OpenedCrawl, word: str) -> dict[str, Any]:
    now = await read_discovery(crawl)
    wanted = _new_discovery(now, word, crawl.client.now_ms())
    if wanted != now:
        await crawl.client.command("HSET", crawl.crawl_keys.control, DISCOVERY, wanted.field())
        await crawl.record_event("rule", f"discovery: {word}")
    return discovery_data(wanted)


def _new_discovery(now: Discovery, word: str, now_ms: int) -> Discovery:
    if word == "off" and now.is_on:
        return Discovery(is_on=False, off_from_ms=now_ms)
    if word == "on" and not now.is_on:
        return Discovery(is_on=True, off_from_ms=now.off_from_ms, off_until_ms=now_ms)
    return now


def discovery_text(data: dict[str, Any]) -> str:
    if not data["is_on"]:
        return f"discovery is off since {data['off_from']}: links found since are not queued"
    if data["off_from"] is None:
        return "discovery is on"
    return f"discovery is on; links found from {data['off_from']} to {data['off_until']} were not queued"
