"""Sums over the partitions that this node owns, from its regular polls of Redis."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.scripts import PartitionView

COUNTED: Final = {
    name: name.encode()
    for name in (
        "seen",
        "duplicates",
        "ended",
        "dead",
        "lost",
        "withheld",
        "unrunnable",
        "rejected",
        "damaged",
        "bytes",
        "begun_anew",
        "may_refetch",
    )
}
"""The summed counters of a partition, see `CRAWL_COUNTERS` in `bigcrawl.stats`, and their fields in Redis."""


class OwnedSums:
    def __init__(self) -> None:
        self._looked_s = time.monotonic()
        self.hosts: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.inbox = self.hot = self.taken = 0

    @property
    def age_s(self) -> float:
        """Seconds since the node's last poll, or since its start; grows while Redis is away."""
        return time.monotonic() - self._looked_s

    def add_up_views(self, views: Sequence[PartitionView]) -> None:
        """Add up a poll; raise nothing, because the caller also renews the leases."""
        self._looked_s = time.monotonic()
        self.hosts = Counter()
        self.counts = Counter()
        self.inbox = self.hot = self.taken = 0
        for view in views:
            with suppress(ValueError):  # a field is no number; count what was read before it
                self._add_view(view)

    def _add_view(self, view: PartitionView) -> None:
        hosts = self.hosts
        hosts["ready"] += view.hosts_ready
        hosts["waiting"] += view.hosts_waiting
        hosts["busy"] += view.hosts_busy
        hosts["snoozed"] += view.hosts_snoozed
        hosts["retired"] += view.hosts_retired
        self.inbox += max(0, view.count("appended_urls") - view.count("folded_urls"))
        self.hot += max(0, view.count("hot"))
        self.taken += view.taken
        fields, counts = view.fields, self.counts
        for name, field in COUNTED.items():
            if field in fields:
                counts[name] += int(fields[field])
