"""`scrapy frontier budget NAME`: a rule set here replaces the settings' rule of that name on every node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result, named_lines
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.node.control import BUDGETED
from bigcrawl.scheduler.rules.budget_rules import LIMITS, parse_rule, parse_rule_name, rule_json
from bigcrawl.views.budget import read_budget, read_rules
from bigcrawl.views.feature import all_views
from bigcrawl.views.newest_files import REMEDY
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.scheduler.rules.budget_rules import Rule
    from bigcrawl.views.opened_crawl import OpenedCrawl

_OPTIONS = {"budget": "urls"}
OPTIONS = {_OPTIONS.get(limit, limit): limit for limit in LIMITS}


def budget_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for option, limit in OPTIONS.items():
        add(f"--{option}", type=int, metavar="N", help=LIMITS[limit].meaning)
    add("--unset", action="store_true", help="remove its rule, that of the settings too")


def budget(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the budget and the limits of a site; with options, change the rule set by hand."""
    name = parse_rule_name(words[0], "scrapy frontier budget")
    wanted = {limit: value for option, limit in OPTIONS.items() if (value := getattr(opts, option, None)) is not None}
    unset = bool(getattr(opts, "unset", False))
    if wanted and unset:
        raise ConfigError("--unset removes the whole rule; give either --unset or limits")
    changes = parse_rule(wanted, "scrapy frontier budget")
    data = in_crawl(config, _change_budget, name, None if unset else changes)
    return Result(data, budget_text(data))


async def _change_budget(crawl: OpenedCrawl, name: str, changes: dict[str, int] | None) -> dict[str, Any]:
    rules = await read_rules(crawl)
    if changes is None:
        await _write_rule(crawl, name, {} if name in rules.settings else None)
    elif changes:
        before = rules.live.get(name, rules.settings.get(name, {}))
        await _write_rule(crawl, name, parse_rule({**before, **changes}, name))
    return await read_budget(crawl, name)


async def _write_rule(crawl: OpenedCrawl, name: str, rule: Rule | None) -> None:
    """Change a rule, and then notify the nodes. A finished crawl may have URLs to fetch again."""
    keys = crawl.crawl_keys
    row: tuple[str | bytes, ...] = ("HDEL", keys.rules, name)
    if rule is not None:
        row = ("HSET", keys.rules, name, rule_json(rule))
    await crawl.client.commands([row, ("HINCRBY", keys.control, BUDGETED, "1")])
    await crawl.unmark_finished()
    limits = rule_json(rule).decode() if rule is not None else "those of the settings"
    await crawl.record_event("rule", f"limits of {name}: {limits}")


def limits_text(data: Mapping[str, Any]) -> str:
    return ", ".join(f"{limit} {row['value']:,} (rule {row['rule']})" for limit, row in data.items())


def budget_text(data: dict[str, Any]) -> str:
    rows = {}
    if "pld" in data:
        rows["in-degree"] = _in_degree_text(data)
        rows["policy"] = f"{data['policy']}: {_budget_per_turn(data['budget_by_policy'])}"
    if unit := data.get("unit"):
        rows["unit"] = _unit_text(unit)
    rows |= {view.row: data[view.row] for view in all_views() if data.get(view.row)}
    rows["by hand"] = _rule_text(data["rule_by_hand"], "no rule")
    rows["settings"] = _rule_text(data["rule_of_settings"], "no rule")
    if "pld" in data:
        if data["files"]["store"]:
            rows["files"] = f"the newest point in {data['files']['store']} was read"
        rows["in force"] = limits_text(data["limits"]) or f"the policy's: {_budget_per_turn(data['budget_by_policy'])}"
    return named_lines(data["name"], rows)


def _in_degree_text(data: dict[str, Any]) -> str:
    degree = data["in_degree"]
    if degree is None:
        return f"unknown: the partition's files are not here; {REMEDY}"
    at_worst = data["rank_at_worst"]
    rank = f", at worst number {at_worst:,} of {data['ranked_plds']:,}" if at_worst else ""
    if degree and not at_worst:
        rank = "; ranks are counted twice a minute, and not yet"
    return f"{degree:,} other PLD{' links' if degree == 1 else 's link'} to {data['pld']}{rank}"


def _unit_text(unit: Mapping[str, Any]) -> str:
    if unit["in_degree"] is None:
        return f"{unit['name']}: unknown, as the in-degree"
    has_budget = "has a budget of its own" if unit["has_budget"] else "shares that of its domain"
    return f"{unit['name']} {has_budget}: {unit['in_degree']:,} other PLDs link to it, of {unit['links_min']:,} needed"


def _budget_per_turn(budget_of: int | None) -> str:
    return "no budgets" if budget_of is None else f"{budget_of:,} URLs a turn"


def _rule_text(written: dict[str, int] | None, absent: str) -> str:
    if written is None:
        return absent
    return ", ".join(f"{limit} {value:,}" for limit, value in written.items()) or "no limit, in spite of the settings"
