"""Site priorities in a partition: a rule's priority replaces that of URLs when they are queued or re-read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.features.site_priorities.limits import PRIORITY
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart
from bigcrawl.scheduler.records.member import NOT_RULED
from bigcrawl.scheduler.records.queued_url import UNCHECKED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.scheduler.budgets.allowances import BoundUrl
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class SitePriorities(Feature):
    name = "site_priorities"

    @classmethod
    def of_config(cls, config: Config) -> SitePriorities:
        return cls()  # rules may come while the crawl runs

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _PriorityStep(tables, pld_of)


class _PriorityStep(StepPart):
    def __init__(self, tables: Tables, pld_of: Callable[[str], str]) -> None:
        super().__init__(tables, pld_of)
        self._ruled: dict[int, int] = {}

    def limit(self, bound: Sequence[BoundUrl]) -> None:
        self._ruled = {}
        for one in bound:
            was_tried = one.url.flags & UNCHECKED and one.url.priority < 0  # it stays behind its host's others
            if (rule := one.limits.get(PRIORITY)) and not was_tried:
                one.prioritize(rule.value)
                self._ruled[one.url.key] = rule.value

    def known_of(self, urls: Sequence[QueuedUrl]) -> Mapping[str, npt.NDArray[Any]]:
        """Return the priorities that rules set for the URLs last passed to `limit`."""
        ruled, self._ruled = self._ruled, {}
        if not ruled:
            return {}
        return {"ruled": np.array([ruled.get(url.key, NOT_RULED) for url in urls], dtype=np.int64)}


FEATURE = SitePriorities
