"""The source of all metrics: the node's own state and Scrapy's stats, but never Redis."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.metrics.disk_left import DiskSpaceLeft
    from bigcrawl.metrics.owned import OwnedSums
    from bigcrawl.scheduler.node.assembly import Parts


class MetricsSource:
    def __init__(self, parts: Parts, get_stat: Callable[[str], object], sums: OwnedSums, disk: DiskSpaceLeft) -> None:
        self.parts = parts
        self._get_stat = get_stat
        self.sums = sums
        self.disk = disk

    def stat_value(self, key: str) -> float:
        value = self._get_stat(key)
        return value if isinstance(value, int | float) else 0

    def log_lines(self) -> dict[str, float]:
        made = self.parts.engine.made()
        return {"warning": made.warnings, "error": made.errors}

    def urls_by_place(self) -> dict[str, float]:
        """Return the URLs in the owned partitions, by place. Cost: 2 us a partition."""
        over = parked = waiting = 0
        for owned in self.parts.ownership.owned.values():
            disk = owned.disk
            over += len(disk.state.turns.over)
            parked += len(disk.state.parked)
            waiting += disk.state.waiting
        sums = self.sums
        return {
            "inbox": sums.inbox,
            "front": max(0, waiting - over - parked),
            "over_budget": over,
            "parked": parked,
            "back": sums.hot,
            "taken": sums.taken,
        }

    def held_by_stage(self) -> dict[str, float]:
        return dict(Counter(held.stage.value for held in self.parts.handout.held))
