"""Reads the budget and the other limits of a site, and the rules that set them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.budgets.in_degrees import InDegreeRanks, sum_published
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.partition.reader import UNTOUCHED
from bigcrawl.scheduler.rules.budget_rules import merge_rules, parse_rules, read_live_rules
from bigcrawl.scheduler.rules.names import EVERY, URL_PATTERN
from bigcrawl.scheduler.rules.rule_book import RuleBook
from bigcrawl.views.feature import lowered_budget
from bigcrawl.views.newest_files import files_to_read, is_looked_at, read_disk, read_view, said_of_files

if TYPE_CHECKING:
    from bigcrawl.scheduler.rules.budget_rules import Rule
    from bigcrawl.scheduler.rules.rule_book import Limits
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace


class StoredRules(NamedTuple):
    settings: dict[str, Rule]
    live: dict[str, Rule]


async def read_rules(crawl: OpenedCrawl) -> StoredRules:
    fields = dict(pairs_of(await crawl.client.command("HGETALL", crawl.crawl_keys.rules)))
    return StoredRules(parse_rules(crawl.config.budget.rules), read_live_rules(fields)[0])


async def read_budget(crawl: OpenedCrawl, name: str) -> dict[str, Any]:
    """Return the limits of a PLD or host and the rules for it; only the rules if `name` is a pattern or a path."""
    rules = await read_rules(crawl)
    data: dict[str, Any] = {
        "name": name,
        "policy": crawl.config.budget.policy,
        "rule_by_hand": rules.live.get(name),
        "rule_of_settings": rules.settings.get(name),
    }
    if name.startswith((EVERY, URL_PATTERN)) or "/" in name:
        return data
    pld = crawl.suffixes.pld(name)
    key = crawl.url_keys.of_pld(pld)
    partition = crawl.url_keys.partition_of(pld, crawl.partitions)
    view = await read_view(crawl, partition)
    with files_to_read(crawl, partition, is_looked_at) as files:
        disk = read_disk(view, files.directory, 0, key)
    in_degree = disk.in_degree if disk is not None else None
    counts, _ = sum_published(await crawl.client.command("HVALS", crawl.crawl_keys.in_degrees))
    ranks, policy = InDegreeRanks(counts), make_policy(crawl.config.budget, counts)
    degrees = np.array([in_degree or 0], dtype=np.uint32)
    by_policy = None if policy is None else int(policy.budgets(np.array([key], dtype=KEY_TYPE), degrees)[0])
    return {
        **data,
        "pld": pld,
        "pld_key": f"{key:016x}",
        **said_of_files(files, has_any=disk is not None and disk is not UNTOUCHED),
        "in_degree": in_degree,
        "rank_at_worst": int(ranks.worst_ranks(degrees)[0]) if in_degree and ranks.total else None,
        "ranked_plds": ranks.total,
        "budget_by_policy": by_policy,
        **lowered_budget(disk, crawl.config),
        "limits": _limits_data(rule_book(crawl, rules).for_host(name)),
    }


async def limits_of_url(crawl: OpenedCrawl, place: UrlPlace) -> dict[str, Any]:
    return _limits_data(rule_book(crawl, await read_rules(crawl)).for_url(place.host, place.url))


def rule_book(crawl: OpenedCrawl, rules: StoredRules) -> RuleBook:
    return RuleBook(merge_rules(rules.settings, rules.live), crawl.suffixes.pld, crawl.url_keys.of_pld)


def _limits_data(limits: Limits) -> dict[str, Any]:
    return {name: {"value": limit.value, "rule": limit.rule} for name, limit in limits.items()}
