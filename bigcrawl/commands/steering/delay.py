"""`scrapy frontier delay NAME`: show and change the delays set by hand for a host or a pay-level domain.

A rule set here is stored in Redis, replaces the settings' rule of that name, and is in force on all nodes within a
second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.node.control import DELAYED
from bigcrawl.scheduler.rules.delay_rules import (
    NO_DELAYS,
    DelayBook,
    DelayRule,
    delays_in_force,
    parse_delay,
    parse_delay_name,
    parse_delays,
)
from bigcrawl.scheduler.rules.names import BELOW

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config

_WHERE = "scrapy frontier delay"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that set or remove a rule."""
    add = parser.add_argument
    add("--delay", type=float, metavar="S", help="seconds that each of its hosts rests")
    add("--pld-delay", type=float, metavar="S", help="seconds between starts in the whole pay-level domain")
    add("--unset", action="store_true", help="remove its rule, that of the settings too")


def delay(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the delays of a host or a pay-level domain; with options, change the rule set by hand.

    Raises:
        ConfigError: the crawl does not exist, or the name or a value is invalid.
        TransientStoreError: Redis does not answer.
    """
    name = parse_delay_name(words[0], _WHERE)
    wanted = {key: value for key in ("delay", "pld_delay") if (value := getattr(opts, key, None)) is not None}
    unset = bool(getattr(opts, "unset", False))
    if wanted and unset:
        raise ConfigError("--unset takes the whole rule away; leave it out, or the delays")
    changes = parse_delay(wanted, _WHERE).written()
    with server_of(config) as server:
        data = asyncio.run(_delay(config, server, name, None if unset else changes))
    return Result(data, delay_text(data))


async def _delay(config: Config, server: str, name: str, changes: dict[str, float] | None) -> dict[str, Any]:
    of_settings = parse_delays(config.pace.delay_rules)
    async with opened(config, server) as crawl:
        rules = await rules_in_force(crawl)
        if changes is None:
            await _set(crawl, name, NO_DELAYS if name in of_settings else None)
        elif changes:
            await _set(crawl, name, parse_delay({**rules.get(name, NO_DELAYS).written(), **changes}, _WHERE))
        rules = await rules_in_force(crawl)
        in_force = None if name.startswith(BELOW) else DelayBook(rules, crawl.suffixes.pld).of_host(name)
    rule, settings = rules.get(name), of_settings.get(name)
    data: dict[str, Any] = {
        "name": name,
        "rule": rule.written() if rule else None,
        "rule_of_settings": settings.written() if settings else None,
    }
    if in_force is not None:
        data |= seconds_of(config, in_force)
    return data


def seconds_of(config: Config, rule: DelayRule) -> dict[str, float]:
    """Return the delays of a host by its rule; the settings' where the rule says nothing."""
    delay_ms = config.politeness.host_delay_ms if rule.delay_ms is None else rule.delay_ms
    pld_ms = config.pace.pld_delay_ms if rule.pld_delay_ms is None else rule.pld_delay_ms
    return {"delay": delay_ms / 1000, "pld_delay": pld_ms / 1000}


async def rules_in_force(crawl: OpenedCrawl) -> dict[str, DelayRule]:
    """Return the rules of settings and operators, by name."""
    live = dict(pairs_of(await crawl.client.command("HGETALL", CrawlKeys(crawl.config.crawl.name).delays)))
    return delays_in_force(parse_delays(crawl.config.pace.delay_rules), live)[0]


async def _set(crawl: OpenedCrawl, name: str, rule: DelayRule | None) -> None:
    keys = CrawlKeys(crawl.config.crawl.name)
    row: tuple[str | bytes, ...] = ("HDEL", keys.delays, name)
    if rule is not None:
        row = ("HSET", keys.delays, name, rule.to_json())
    await crawl.client.commands([row, ("HINCRBY", keys.control, DELAYED, "1")])


def delay_text(data: dict[str, Any]) -> str:
    """Return the result as text."""
    rows = {"rule": _text(data["rule"]), "settings": _text(data["rule_of_settings"])}
    if "delay" in data:
        rows["in force"] = f"a host rests {data['delay']:g} s, {data['pld_delay']:g} s between starts in the PLD"
    return "\n".join([data["name"], *(f"  {name:<10}{text}" for name, text in rows.items())])


def _text(written: dict[str, float] | None) -> str:
    return ", ".join(f"{limit} {value:g} s" for limit, value in (written or {}).items()) or "no rule"
