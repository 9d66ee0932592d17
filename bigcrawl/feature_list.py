"""The optional features of a crawl, each a folder of `bigcrawl/features/`, in the order in which a step calls them.

A folder has a module for each part of bigcrawl that the feature extends. The part imports these modules by their name,
and knows no feature. Those with a * are imported only if the feature is on, of which `settings.is_on`, if any, decides.

    settings      its settings, as fields of a class                `config`
    stats         rows of the tables of counts                      `stats`
    limits        limits that rules may set                         `scheduler.rules.budget_rules`
    url           traits of discovered URLs                         `scheduler.records.queued_url`
    rows          rows that nodes and owners send to partitions     `scheduler.records.observed`
    fold          its tables, and its part of a partition's step    `scheduler.partition.fold.feature`
    page *        observes a node's pages                           `scheduler.handout.observers`
    prioritizers  give URLs their priorities                        `scheduler.queues.prioritizers`
    middlewares * downloader middlewares, and checks of settings    `installing`, `middlewares.revisits`
    spider_middlewares *                                            `installing`
    metrics       a node's metrics                                  `metrics.table`
    view          its part of status, explain and budget            `views.feature`
    counted       reads the counts of all nodes about pages         `views.counted`

To remove a feature, delete its folder and its line here.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

FEATURES: Final = (
    "copies",
    "traps",
    "mirrors",
    "revisits",
    "totals",
    "votes",
    "tallies",
    "whole_hosts",
    "requisites",
    "site_priorities",
    "rendering",
)


@cache
def modules_of(part: str) -> tuple[ModuleType, ...]:
    return tuple(module for feature in FEATURES if (module := _module(feature, part)) is not None)


def modules_on(part: str, config: object) -> tuple[ModuleType, ...]:
    modules = (_module(feature, part) for feature in FEATURES if _is_on(feature, config))
    return tuple(module for module in modules if module is not None)


def _is_on(feature: str, config: object) -> bool:
    is_on = getattr(_module(feature, "settings"), "is_on", None)
    return is_on is None or is_on(config)


def _module(feature: str, part: str) -> ModuleType | None:
    name = f"bigcrawl.features.{feature}.{part}"
    return import_module(name) if find_spec(name) is not None else None
