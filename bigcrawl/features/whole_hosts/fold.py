"""Whole hosts in a partition: a step starts no new host while enough are being fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.features.whole_hosts.settings import WholeHostConfig
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.tables import Tables


class WholeHosts(Feature):
    name = "whole_hosts"

    def __init__(self, hosts_at_once: int) -> None:
        self.hosts_at_once = hosts_at_once

    @classmethod
    def of_config(cls, config: Config) -> WholeHosts | None:
        at_once = config.feature_config(WholeHostConfig).at_once
        return cls(max(1, at_once // config.crawl.partitions)) if at_once else None

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return StepPart(tables, pld_of)


FEATURE = WholeHosts
