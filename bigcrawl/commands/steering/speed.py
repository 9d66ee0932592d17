"""`scrapy frontier speed [TEXT]`: a plan set here replaces the settings' on every node until `--unset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result, named_lines
from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.speed_words import parse_speed
from bigcrawl.scheduler.node.control import SPEED
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.orders import read_speed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

_WHERE = "scrapy frontier speed"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--unset", action="store_true", help="go back to the settings' speed")


def speed(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the speed in force; set another plan if one is given."""
    text = " ".join(words)
    unset = bool(getattr(opts, "unset", False))
    if text and unset:
        raise ConfigError("--unset removes the speed set by hand; give either --unset or a speed")
    parse_speed(text, config.pace.time_zone, _WHERE)
    data = in_crawl(config, _change_speed, text, unset=unset)
    return Result(data, speed_text(data))


async def _change_speed(crawl: OpenedCrawl, text: str, *, unset: bool) -> dict[str, Any]:
    if text:
        await crawl.client.command("HSET", crawl.crawl_keys.control, SPEED, text)
    elif unset:
        await crawl.client.command("HDEL", crawl.crawl_keys.control, SPEED)
    if text or unset:
        await crawl.record_event("speed", f"speed: {text or 'that of the settings'}")
    return await read_speed(crawl)


def speed_text(data: dict[str, Any]) -> str:
    rows = {
        "now": data["now"],
        "by hand": data["by_hand"] if data["by_hand"] is not None else "nothing is set",
        "settings": data["settings"] or "no limit",
        "time zone": data["time_zone"],
    }
    if data["paused"]:
        rows["paused"] = ", ".join(f"node {name}" if name else "the whole crawl" for name in data["paused"])
    return named_lines("the whole crawl", rows)
