"""Settings of the frontier, its budgets, its filters and its store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.config.checks import to_ms
from bigcrawl.config.shapes import BudgetConfig, FilterConfig, FrontierConfig, StoreConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_filters(value: Mapping[str, Any]) -> FilterConfig:
    return FilterConfig(
        scope=value["BIGCRAWL_SCOPE"],
        scope_list=tuple(value["BIGCRAWL_SCOPE_LIST"] or ()),
        elements=tuple(value["BIGCRAWL_LINK_ELEMENTS"] or ()),
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
        handled_schemes=frozenset(map(str.lower, value["BIGCRAWL_HANDLED_SCHEMES"] or ())),
        has_fingerprints=value["BIGCRAWL_FINGERPRINTS"],
    )


def read_budget(value: Mapping[str, Any]) -> BudgetConfig:
    return BudgetConfig(
        policy=value["BIGCRAWL_BUDGET_POLICY"],
        base=value["BIGCRAWL_BUDGET"],
        top=value["BIGCRAWL_BUDGET_TOP"],
        maximum=value["BIGCRAWL_BUDGET_MAX"],
        rules=value["BIGCRAWL_BUDGET_RULES"] or {},
    )


def read_store(value: Mapping[str, Any]) -> StoreConfig:
    return StoreConfig(
        value["BIGCRAWL_STORE_URL"] or None,
        to_ms(value["BIGCRAWL_STORE_SECONDS"]),
        value["BIGCRAWL_LOST_PARTITIONS"],
    )
