from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.budgets.in_degrees import InDegreeRanks, sum_published
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.partition.reader import UNTOUCHED
from bigcrawl.scheduler.rules.budget_rules import RuleBook, merge_rules, parse_rules, read_live_rules
from bigcrawl.scheduler.rules.names import EVERY, URL_PATTERN
from bigcrawl.views.feature import lowered_budget
from bigcrawl.views.newest_files import files_data, files_to_read, is_wanted_file, read_disk, read_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.scheduler.rules.budget_rules import Limits, Rule
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace


class StoredRules(NamedTuple):
    settings: dict[str, Rule]
    live: dict[str, Rule]


async def read_rules(crawl: OpenedCrawl) -> StoredRules:
    return stored_rules(crawl, dict(pairs_of(await crawl.client.command("HGETALL", crawl.crawl_keys.rules))))


def stored_rules(crawl: OpenedCrawl, fields: Mapping[bytes, bytes]) -> StoredRules:
    return StoredRules(parse_rules(crawl.config.budget.rules), read_live_rules(fields)[0])


async def read_budget(crawl: OpenedCrawl, name: str) -> dict[str, Any]:
    """Return the limits of a PLD or host and its rules; only the rules if `name` is a pattern or a path."""
    rules = await read_rules(crawl)
    data = _rules_data(crawl, name, rules)
    if name.startswith((EVERY, URL_PATTERN)):
        return data
    data |= await unit_data(crawl, name)
    if "/" in name:
        return data
    view = await read_view(crawl, crawl.partition_of_host(name))
    in_degrees = await crawl.client.command("HVALS", crawl.crawl_keys.in_degrees)
    return data | budget_data(crawl, name, rules, view, in_degrees)


def _rules_data(crawl: OpenedCrawl, name: str, rules: StoredRules) -> dict[str, Any]:
    return {
        "name": name,
        "policy": crawl.config.budget.policy,
        "rule_by_hand": rules.live.get(name),
        "rule_of_settings": rules.settings.get(name),
    }


def budget_data(
    crawl: OpenedCrawl, name: str, rules: StoredRules, view: PartitionView, in_degrees: Sequence[bytes]
) -> dict[str, Any]:
    """Return the limits of a PLD or host; `in_degrees` are the distributions that the partitions have published."""
    pld = crawl.suffixes.pld(name)
    key = crawl.url_keys.of_pld(pld)
    partition = crawl.url_keys.partition_of(pld, crawl.partitions)
    with files_to_read(crawl, partition, is_wanted_file) as files:
        disk = read_disk(view, files.directory, 0, key)
    in_degree = disk.in_degree if disk is not None else None
    counts, _ = sum_published(in_degrees)
    ranks, policy = InDegreeRanks(counts), make_policy(crawl.config.budget, counts)
    degrees = np.array([in_degree or 0], dtype=np.uint32)
    by_policy = None if policy is None else int(policy.budgets(np.array([key], dtype=KEY_TYPE), degrees)[0])
    return {
        **_rules_data(crawl, name, rules),
        "pld": pld,
        "pld_key": f"{key:016x}",
        **files_data(files, has_any=disk is not None and disk is not UNTOUCHED),
        "in_degree": in_degree,
        "rank_at_worst": int(ranks.worst_ranks(degrees)[0]) if in_degree and ranks.total else None,
        "ranked_plds": ranks.total,
        "budget_by_policy": by_policy,
        **lowered_budget(disk, crawl.config),
        "limits": _limits_data(rule_book(crawl, rules).for_host(name)),
    }


async def unit_data(crawl: OpenedCrawl, name: str) -> dict[str, Any]:
    """Return the data of the `unit` of a host or path, None outside of units; empty in a crawl without units."""
    return {"unit": await _unit_of(crawl, name)} if crawl.config.budget.units else {}


async def _unit_of(crawl: OpenedCrawl, name: str) -> dict[str, Any] | None:
    from bigcrawl.scheduler.budgets.units import BudgetUnits

    budget, suffixes, keys = crawl.config.budget, crawl.suffixes, crawl.url_keys
    private_pld_of = lambda host: suffixes.with_private().pld(host)  # noqa: E731 - only some units need the list
    units = BudgetUnits(budget.units, budget.unit_links, suffixes.pld, keys.of_pld, private_pld_of)
    host = name.partition("/")[0]
    if not (unit := units.name_of(host, f"http://{name}")):
        return None
    partition = crawl.partition_of_host(host)
    with files_to_read(crawl, partition, is_wanted_file) as files:
        disk = read_disk(await read_view(crawl, partition), files.directory, 0, units.key_of(unit))
    in_degree = disk.in_degree if disk is not None else None
    return {
        "name": unit,
        "in_degree": in_degree,
        "links_min": budget.unit_links,
        "has_budget": in_degree is not None and in_degree >= budget.unit_links,
    }


def limits_of_url(crawl: OpenedCrawl, place: UrlPlace, rules: Mapping[bytes, bytes]) -> dict[str, Any]:
    return _limits_data(rule_book(crawl, stored_rules(crawl, rules)).for_url(place.host, place.url))


def rule_book(crawl: OpenedCrawl, rules: StoredRules) -> RuleBook:
    return RuleBook(merge_rules(rules.settings, rules.live), crawl.suffixes.pld, crawl.url_keys.of_pld)


def _limits_data(limits: Limits) -> dict[str, Any]:
    return {name: {"value": limit.value, "rule": limit.rule} for name, limit in limits.items()}
