"""The optional features of a crawl, each a folder of `bigcrawl/features/`, in the order in which a step calls them.

A folder has a module for each part of bigcrawl that the feature extends. The part imports these modules by their name,
and knows no feature:

    settings      its settings, as fields of a class                `config`
    stats         rows of the tables of counts                      `stats`
    limits        limits that rules may set                         `scheduler.rules.budget_rules`
    url           traits of discovered URLs                         `scheduler.records.url_traits`
    rows          rows that nodes and owners send to partitions     `scheduler.records.observed`
    fold          its tables, and its part of a partition's step    `scheduler.partition.fold.feature`
    page          observes a node's pages                           `scheduler.handout.observers`
    prioritizers  give URLs their priorities                        `scheduler.queues.prioritizers`
    middlewares   downloader middlewares                            `installing`, `middlewares.revisits`
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
)


@cache
def modules_of(part: str) -> tuple[ModuleType, ...]:
    names = (f"bigcrawl.features.{feature}.{part}" for feature in FEATURES)
    return tuple(import_module(name) for name in names if find_spec(name) is not None)
