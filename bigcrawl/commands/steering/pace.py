"""Delays of hosts and the speed of the crawl. Values set here replace those of the settings on all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result, named_lines
from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.speed_words import parse_speed
from bigcrawl.scheduler.node.control import DELAYED, SPEED
from bigcrawl.scheduler.rules.delay_rules import NO_DELAYS, DelayBook, parse_delay, parse_delay_name, parse_delays
from bigcrawl.scheduler.rules.names import BELOW
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.orders import read_speed, rules_in_force, seconds_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.scheduler.rules.delay_rules import DelayRule
    from bigcrawl.views.opened_crawl import OpenedCrawl

_DELAY = "scrapy frontier delay"


def delay_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--delay", type=float, metavar="S", help="seconds that each of its hosts rests")
    add("--pld-delay", type=float, metavar="S", help="seconds between starts in the whole pay-level domain")
    add("--unset", action="store_true", help="remove its rule, that of the settings too")


def delay(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the delays of a host or a pay-level domain; with options, change the rule set by hand."""
    name = parse_delay_name(words[0], _DELAY)
    wanted = {key: value for key in ("delay", "pld_delay") if (value := getattr(opts, key, None)) is not None}
    unset = bool(getattr(opts, "unset", False))
    if wanted and unset:
        raise ConfigError("--unset removes the whole rule; give either --unset or delays")
    changes = parse_delay(wanted, _DELAY).as_seconds()
    data = in_crawl(config, _change_delay, name, None if unset else changes)
    return Result(data, delay_text(data))


async def _change_delay(crawl: OpenedCrawl, name: str, changes: dict[str, float] | None) -> dict[str, Any]:
    of_settings = parse_delays(crawl.config.pace.delay_rules)
    rules = await rules_in_force(crawl)
    if changes is None:
        await _write_rule(crawl, name, NO_DELAYS if name in of_settings else None)
    elif changes:
        await _write_rule(crawl, name, parse_delay({**rules.get(name, NO_DELAYS).as_seconds(), **changes}, _DELAY))
    rules = await rules_in_force(crawl)
    rule, settings = rules.get(name), of_settings.get(name)
    data: dict[str, Any] = {
        "name": name,
        "rule": rule.as_seconds() if rule else None,
        "rule_of_settings": settings.as_seconds() if settings else None,
    }
    if not name.startswith(BELOW):
        data |= seconds_of(crawl.config, DelayBook(rules, crawl.suffixes.pld).of_host(name))
    return data


async def _write_rule(crawl: OpenedCrawl, name: str, rule: DelayRule | None) -> None:
    keys = crawl.crawl_keys
    row: tuple[str | bytes, ...] = ("HDEL", keys.delays, name)
    if rule is not None:
        row = ("HSET", keys.delays, name, rule.to_json())
    await crawl.client.commands([row, ("HINCRBY", keys.control, DELAYED, "1")])
    await crawl.record_event("rule", f"delay of {name}: {_limits_text(rule.as_seconds() if rule else None)}")


def delay_text(data: dict[str, Any]) -> str:
    rows = {"rule": _limits_text(data["rule"]), "settings": _limits_text(data["rule_of_settings"])}
    if "delay" in data:
        rows["in force"] = f"a host rests {data['delay']:g} s, {data['pld_delay']:g} s between starts in the PLD"
    return named_lines(data["name"], rows, 10)


def _limits_text(written: dict[str, float] | None) -> str:
    return ", ".join(f"{limit} {value:g} s" for limit, value in (written or {}).items()) or "no rule"


_SPEED = "scrapy frontier speed"


def speed_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--unset", action="store_true", help="go back to the settings' speed")


def speed(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the current speed; set another plan if one is given."""
    text = " ".join(words)
    unset = bool(getattr(opts, "unset", False))
    if text and unset:
        raise ConfigError("--unset removes the speed set by hand; give either --unset or a speed")
    parse_speed(text, config.pace.time_zone, _SPEED)
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
