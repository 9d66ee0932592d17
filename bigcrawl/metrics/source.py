"""Where metrics come from: what a node and Scrapy's stats know already. Nothing here asks Redis."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.metrics.disk_left import DiskLeft
    from bigcrawl.metrics.owned import OwnedSums
    from bigcrawl.scheduler.node.assembly import Parts


class Source:
    """What the table of metrics reads from.

    Attributes:
        parts: of the node.
        sums: over the partitions that it owns.
        disk: how much room is left.
    """

    def __init__(self, parts: Parts, get_stat: Callable[[str], object], sums: OwnedSums, disk: DiskLeft) -> None:
        """`get_stat` returns a value of Scrapy's stats by its key, None if there is none."""
        self.parts = parts
        self._get_stat = get_stat
        self.sums = sums
        self.disk = disk

    def stat(self, key: str) -> float:
        """A counter of Scrapy's stats; 0 if it was never raised, or if the project keeps no stats."""
        value = self._get_stat(key)
        return value if isinstance(value, int | float) else 0

    def urls(self) -> dict[str, float]:
        """URLs by place, in the partitions that the node owns. Cost: 2 us a partition."""
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

    def held(self) -> dict[str, float]:
        """URLs that the node holds, by stage. Cost: 0.1 us a URL, of which there are BIGCRAWL_IN_PROCESS_MAX."""
        return dict(Counter(held.stage.value for held in self.parts.handout.held))
