"""Reads what operators and settings order: speed, blacklist, delays, and whether links are queued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.clock import time_text
from bigcrawl.politeness.speed_words import parse_speed
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.node.control import DISCOVERY, PAUSED, SPEED, ControlHash, Discovery
from bigcrawl.scheduler.rules.blacklist import in_force, parse_entries
from bigcrawl.scheduler.rules.delay_rules import delays_in_force, parse_delays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config
    from bigcrawl.scheduler.rules.delay_rules import DelayRule
    from bigcrawl.views.opened_crawl import OpenedCrawl


async def read_speed(crawl: OpenedCrawl) -> dict[str, Any]:
    control = ControlHash(crawl.client, crawl.config.crawl.name)
    await control.read()
    return speed_of(crawl.config, control.fields, control.now_ms)


def speed_of(config: Config, orders: Mapping[str, bytes], now_ms: int) -> dict[str, Any]:
    """Return the speed at a time, and its source; `orders` are the fields of the control hash."""
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


async def read_discovery(crawl: OpenedCrawl) -> Discovery:
    return Discovery.from_field(await crawl.client.command("HGET", crawl.crawl_keys.control, DISCOVERY))


def discovery_data(discovery: Discovery) -> dict[str, Any]:
    """Return whether links are queued, and the time without queuing, in ISO 8601 with zone; None if unset."""
    return {
        "is_on": discovery.is_on,
        "off_from": _time_or_none(discovery.off_from_ms),
        "off_until": _time_or_none(discovery.off_until_ms),
    }


def _time_or_none(time_ms: int) -> str | None:
    return time_text(time_ms, "T") if time_ms else None


async def entries_of(crawl: OpenedCrawl) -> frozenset[str]:
    live = await crawl.client.command("HGETALL", crawl.crawl_keys.blacklist)
    return entries_with(crawl.config, dict(pairs_of(live)))


def entries_with(config: Config, live: Mapping[bytes, bytes]) -> frozenset[str]:
    return in_force(parse_entries(config.pace.blacklist), live)[0]


def seconds_of(config: Config, rule: DelayRule) -> dict[str, float]:
    delay_ms = config.politeness.host_delay_ms if rule.delay_ms is None else rule.delay_ms
    pld_ms = config.pace.pld_delay_ms if rule.pld_delay_ms is None else rule.pld_delay_ms
    return {"delay": delay_ms / 1000, "pld_delay": pld_ms / 1000}


async def rules_in_force(crawl: OpenedCrawl) -> dict[str, DelayRule]:
    live = await crawl.client.command("HGETALL", crawl.crawl_keys.delays)
    return rules_with(crawl.config, dict(pairs_of(live)))


def rules_with(config: Config, live: Mapping[bytes, bytes]) -> dict[str, DelayRule]:
    return delays_in_force(parse_delays(config.pace.delay_rules), live)[0]
