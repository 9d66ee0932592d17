"""Sizes and times of the frontier, budgets, traps, filters and revisits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.config.checks import to_ms
from bigcrawl.config.shapes import BudgetConfig, FilterConfig, FrontierConfig, RevisitConfig, StoreConfig, TrapConfig
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_filters(value: Mapping[str, Any]) -> FilterConfig:
    return FilterConfig(
        scope=value["BIGCRAWL_SCOPE"],
        scope_list=tuple(value["BIGCRAWL_SCOPE_LIST"] or ()),
        schemes=tuple(value["BIGCRAWL_FILTER_SCHEMES"] or ()),
        extensions=tuple(value["BIGCRAWL_FILTER_EXTENSIONS"] or ()),
        paths=tuple(value["BIGCRAWL_FILTER_PATHS"] or ()),
        directories_max=value["BIGCRAWL_FILTER_DIRECTORIES_MAX"],
        characters=value["BIGCRAWL_FILTER_CHARACTERS"],
        function=value["BIGCRAWL_FILTER"] or None,
        media_types=tuple(value["BIGCRAWL_FILTER_MEDIA_TYPES"] or ()),
        strings=tuple(value["BIGCRAWL_FILTER_STRINGS"] or ()),
        languages=tuple(value["BIGCRAWL_FILTER_LANGUAGES"] or ()),
        head_first=tuple(value["BIGCRAWL_HEAD_FIRST"] or ()),
    )


def read_revisits(value: Mapping[str, Any]) -> RevisitConfig:
    config = RevisitConfig(
        rule=value["BIGCRAWL_REVISIT"],
        usual_s=value["BIGCRAWL_REVISIT_SECONDS"],
        shortest_s=value["BIGCRAWL_REVISIT_SECONDS_MIN"],
        longest_s=value["BIGCRAWL_REVISIT_SECONDS_MAX"],
        visits_max=value["BIGCRAWL_REVISIT_VISITS_MAX"],
    )
    if config.rule != "never" and not config.shortest_s <= config.usual_s <= config.longest_s:
        raise ConfigError(
            f"BIGCRAWL_REVISIT_SECONDS is {config.usual_s:g}; must be between BIGCRAWL_REVISIT_SECONDS_MIN, "
            f"{config.shortest_s:g}, and BIGCRAWL_REVISIT_SECONDS_MAX, {config.longest_s:g}"
        )
    return config


def read_frontier(value: Mapping[str, Any], concurrency: int) -> FrontierConfig:
    packages = value["BIGCRAWL_STORED_PACKAGES"]
    return FrontierConfig(
        url_bytes_max=value["BIGCRAWL_URL_BYTES_MAX"],
        outbox_urls_max=value["BIGCRAWL_OUTBOX_URLS_MAX"],
        step_ms=to_ms(value["BIGCRAWL_STEP_SECONDS"]),
        durable_ms=to_ms(value["BIGCRAWL_DURABLE_SECONDS"]),
        redis_loss_ms=to_ms(value["BIGCRAWL_REDIS_LOSS_SECONDS"]),
        hot_urls=value["BIGCRAWL_HOT_URLS"],
        host_hot_urls=value["BIGCRAWL_HOST_HOT_URLS"],
        priority_bias=value["BIGCRAWL_PRIORITY_BIAS"],
        prioritizer=value["BIGCRAWL_PRIORITIZER"] or "",
        link_votes=value["BIGCRAWL_LINK_VOTES"],
        content_seen=value["BIGCRAWL_CONTENT_SEEN"],
        host_records=value["BIGCRAWL_HOST_RECORDS"],
        robots_bytes=value["BIGCRAWL_ROBOTS_BYTES"],
        in_process_max=value["BIGCRAWL_IN_PROCESS_MAX"] or 3 * concurrency,
        lease_ms=to_ms(value["BIGCRAWL_LEASE_SECONDS"]),
        start_wait_ms=to_ms(value["BIGCRAWL_START_WAIT"]),
        deaths_max=value["BIGCRAWL_DEATHS_MAX"],
        standstill_ms=to_ms(value["BIGCRAWL_STANDSTILL_SECONDS"]),
        callbacks=tuple(value["BIGCRAWL_CALLBACKS"] or ()),
        stored_packages=None if packages is None else tuple(packages),
        stored_types=tuple(value["BIGCRAWL_STORED_TYPES"] or ()),
        keeps_in_memory=value["BIGCRAWL_NOT_STORABLE"] == "memory",
    )


def read_budget(value: Mapping[str, Any]) -> BudgetConfig:
    return BudgetConfig(
        policy=value["BIGCRAWL_BUDGET_POLICY"],
        base=value["BIGCRAWL_BUDGET"],
        top=value["BIGCRAWL_BUDGET_TOP"],
        maximum=value["BIGCRAWL_BUDGET_MAX"],
        rules=value["BIGCRAWL_BUDGET_RULES"] or {},
    )


def read_traps(value: Mapping[str, Any]) -> TrapConfig:
    looks_for_mirrors = value["BIGCRAWL_TRAPS"] and value["BIGCRAWL_CONTENT_SEEN"] != "off"
    return TrapConfig(
        share=value["BIGCRAWL_TRAP_SHARE"] if value["BIGCRAWL_TRAPS"] else 0.0,
        same_share=value["BIGCRAWL_TRAP_SAME_SHARE"],
        divisor=value["BIGCRAWL_TRAP_DIVISOR"],
        url_bytes=value["BIGCRAWL_TRAP_URL_BYTES"],
        repeats=value["BIGCRAWL_TRAP_REPEATS"],
        segments=value["BIGCRAWL_TRAP_SEGMENTS"],
        hops=value["BIGCRAWL_TRAP_HOPS"],
        parameters=value["BIGCRAWL_TRAP_PARAMETERS"],
        wildcard_hosts=value["BIGCRAWL_TRAP_WILDCARD_HOSTS"],
        mirror_share=value["BIGCRAWL_TRAP_MIRROR_SHARE"] if looks_for_mirrors else 0.0,
        mirror_divisor=value["BIGCRAWL_TRAP_MIRROR_DIVISOR"],
    )


def read_store(value: Mapping[str, Any]) -> StoreConfig:
    return StoreConfig(
        value["BIGCRAWL_STORE_URL"] or None,
        to_ms(value["BIGCRAWL_STORE_SECONDS"]),
        value["BIGCRAWL_LOST_PARTITIONS"],
    )
