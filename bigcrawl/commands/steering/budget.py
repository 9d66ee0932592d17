"""`scrapy frontier budget NAME`: show a PLD's budget and its reasons, or change the rule of a name.

A name is a PLD, a host, `*.` and a name, or `re:` and a pattern. A rule set here is stored in Redis, replaces the
settings' rule of that name, and is in force on every node within a second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.commands.newest_files import REMEDY, files_to_read, is_looked_at, read_disk, said_of_files
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.budgets.in_degrees import Ranks, sum_published
from bigcrawl.scheduler.budgets.mirrors import mirror_verdict_text
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.budgets.traps import trap_verdict_text
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.scheduler.node.control import BUDGETED
from bigcrawl.scheduler.partition.reader import UNTOUCHED
from bigcrawl.scheduler.rules.budget_rules import (
    NO_RULE,
    Rule,
    merge_rules,
    parse_rule,
    parse_rule_name,
    parse_rules,
    read_live_rules,
)
from bigcrawl.scheduler.rules.names import EVERY, URL_PATTERN
from bigcrawl.scheduler.rules.rule_book import RuleBook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.config import Config, TrapConfig
    from bigcrawl.scheduler.partition.reader import UrlOnDisk
    from bigcrawl.scheduler.rules.rule_book import Limits

# By option, the limit it sets; see `bigcrawl.scheduler.rules.budget_rules`.
LIMITS = {"urls": "budget", "pages": "pages", "bytes": "bytes", "depth": "depth"}


class StoredRules(NamedTuple):
    """Rules by name."""

    settings: dict[str, Rule]
    live: dict[str, Rule]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that set or remove a rule."""
    add = parser.add_argument
    add("--urls", type=int, metavar="N", help="URLs that pass per turn; 0 withholds all")
    add("--pages", type=int, metavar="N", help="URLs that pass in total")
    add("--bytes", type=int, metavar="N", help="bytes of bodies that are fetched in total")
    add("--depth", type=int, metavar="N", help="hops from a start URL")
    add("--unset", action="store_true", help="remove its rule, that of the settings too")


def budget(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show how much of a site passes and what limits it; with options, change the rule set by hand.

    Raises:
        ConfigError: the crawl does not exist, or the name or a value is invalid.
        TransientStoreError: Redis does not answer.
        CorruptionError: the partition's files are damaged.
    """
    name = parse_rule_name(words[0], "scrapy frontier budget")
    wanted = {limit: value for option, limit in LIMITS.items() if (value := getattr(opts, option, None)) is not None}
    unset = bool(getattr(opts, "unset", False))
    if wanted and unset:
        raise ConfigError("--unset takes the whole rule away; leave it out, or the limits")
    changes = parse_rule(wanted, "scrapy frontier budget").written()
    with server_of(config) as server:
        data = asyncio.run(_budget(config, server, name, None if unset else changes))
    return Result(data, budget_text(data))


async def _budget(config: Config, server: str, name: str, changes: dict[str, int] | None) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        rules = await read_rules(crawl)
        if changes is None:
            await _set(crawl, name, NO_RULE if name in rules.settings else None)
        elif changes:
            before = rules.live.get(name, rules.settings.get(name, NO_RULE))
            await _set(crawl, name, parse_rule({**before.written(), **changes}, name))
        return await read_budget(crawl, name)


async def read_rules(crawl: OpenedCrawl) -> StoredRules:
    """Return the rules in force, those of the settings and those set by hand."""
    fields = dict(pairs_of(await crawl.client.command("HGETALL", _keys(crawl).rules)))
    return StoredRules(parse_rules(crawl.config.budget.rules), read_live_rules(fields)[0])


async def _set(crawl: OpenedCrawl, name: str, rule: Rule | None) -> None:
    """Change a rule, then notify the nodes; a finished crawl may have URLs to fetch again."""
    keys = _keys(crawl)
    row: tuple[str | bytes, ...] = ("HDEL", keys.rules, name)
    if rule is not None:
        row = ("HSET", keys.rules, name, rule.to_json())
    await crawl.client.commands([row, ("HINCRBY", keys.control, BUDGETED, "1")])
    await FinishCheck(crawl.client, crawl.config.crawl.name, crawl.partitions).take_back()


async def read_budget(crawl: OpenedCrawl, name: str) -> dict[str, Any]:
    """Return what limits a PLD or a host, or the rules of a pattern.

    Raises:
        CorruptionError: the partition's files are damaged.
    """
    rules = await read_rules(crawl)
    data: dict[str, Any] = {
        "name": name,
        "policy": crawl.config.budget.policy,
        "rule_by_hand": _written(rules.live, name),
        "rule_of_settings": _written(rules.settings, name),
    }
    if name.startswith((EVERY, URL_PATTERN)):
        return data
    pld = crawl.suffixes.pld(name)
    key = crawl.url_keys.of_pld(pld)
    partition = crawl.url_keys.partition_of(pld, crawl.partitions)
    with files_to_read(crawl, partition, is_looked_at) as files:
        disk = await read_disk(crawl, partition, files.directory, 0, key)
    in_degree = disk.in_degree if disk is not None else None
    counts, _ = sum_published(await crawl.client.command("HVALS", _keys(crawl).in_degrees))
    ranks, policy = Ranks(counts), make_policy(crawl.config.budget, counts)
    degrees = np.array([in_degree or 0], dtype=np.uint32)
    by_policy = None if policy is None else int(policy.budgets(np.array([key], dtype=KEY_TYPE), degrees)[0])
    return {
        **data,
        "pld": pld,
        "pld_key": f"{key:016x}",
        **said_of_files(files, has_any=disk is not None and disk is not UNTOUCHED),
        "in_degree": in_degree,
        "rank_at_worst": int(ranks.worst(degrees)[0]) if in_degree and ranks.total else None,
        "ranked_plds": ranks.total,
        "budget_by_policy": by_policy,
        "trap": _trap(disk, crawl.config.traps),
        "mirror": _mirror(disk, crawl.config.traps),
        "limits": _limits_data(_book(crawl, rules).for_host(name)),
    }


async def limits_of_url(crawl: OpenedCrawl, place: Place) -> dict[str, Any]:
    """Return the limits that rules set for a URL, by their names: value and rule."""
    return _limits_data(_book(crawl, await read_rules(crawl)).for_url(place.host, place.url))


def _book(crawl: OpenedCrawl, rules: StoredRules) -> RuleBook:
    return RuleBook(merge_rules(rules.settings, rules.live), crawl.suffixes.pld, crawl.url_keys.of_pld)


def _limits_data(limits: Limits) -> dict[str, Any]:
    return {
        "bytes" if field == "fetched_bytes" else field: {"value": limit.value, "rule": limit.rule}
        for field, limit in limits._asdict().items()
        if limit is not None
    }


def limits_text(data: Mapping[str, Any]) -> str:
    """Return limits as text; "" if there are none."""
    return ", ".join(f"{limit} {row['value']:,} (rule {row['rule']})" for limit, row in data.items())


def _trap(disk: UrlOnDisk | None, traps: TrapConfig) -> str | None:
    """Return what a PLD's budget is divided by, and why; None if it is not lowered."""
    if disk is None or disk.trap is None or not disk.trap.is_caught or not traps.share:
        return None
    return f"divided by {traps.divisor}, unless it is set by hand: {trap_verdict_text(disk.trap)}"


def _mirror(disk: UrlOnDisk | None, traps: TrapConfig) -> str | None:
    """Return what a mirror's budget is divided by, and why; None if the PLD is not taken for one."""
    if disk is None or disk.mirror is None or not disk.mirror.is_mirror or not traps.mirror_share:
        return None
    return f"divided by {traps.mirror_divisor}, unless it is set by hand: {mirror_verdict_text(disk.mirror)}"


def _keys(crawl: OpenedCrawl) -> CrawlKeys:
    return CrawlKeys(crawl.config.crawl.name)


def _written(rules: Mapping[str, Rule], name: str) -> dict[str, int] | None:
    return rules[name].written() if name in rules else None


def budget_text(data: dict[str, Any]) -> str:
    """Return the result as text."""
    rows = {}
    if "pld" in data:
        rows["in-degree"] = _in_degree_text(data)
        rows["policy"] = f"{data['policy']}: {_a_turn(data['budget_by_policy'])}"
    if data.get("trap"):
        rows["trap"] = data["trap"]
    if data.get("mirror"):
        rows["mirror"] = data["mirror"]
    rows["by hand"] = _rule_text(data["rule_by_hand"], "no rule")
    rows["settings"] = _rule_text(data["rule_of_settings"], "no rule")
    if "pld" in data:
        if data["files"]["store"]:
            rows["files"] = f"the newest point in {data['files']['store']} was read"
        rows["in force"] = limits_text(data["limits"]) or f"the policy's: {_a_turn(data['budget_by_policy'])}"
    return "\n".join([data["name"], *(f"  {name:<11}{text}" for name, text in rows.items())])


def _in_degree_text(data: dict[str, Any]) -> str:
    degree = data["in_degree"]
    if degree is None:
        return f"unknown: the partition's files are not here; {REMEDY}"
    at_worst = data["rank_at_worst"]
    rank = f", at worst number {at_worst:,} of {data['ranked_plds']:,}" if at_worst else ""
    if degree and not at_worst:
        rank = "; ranks are counted twice a minute, and not yet"
    return f"{degree:,} other PLD{' links' if degree == 1 else 's link'} to {data['pld']}{rank}"


def _a_turn(budget_of: int | None) -> str:
    return "no budgets" if budget_of is None else f"{budget_of:,} URLs a turn"


def _rule_text(written: dict[str, int] | None, absent: str) -> str:
    if written is None:
        return absent
    return ", ".join(f"{limit} {value:,}" for limit, value in written.items()) or "no limit, whatever the settings say"
