"""The source of all metrics: the node's own state and Scrapy's stats, but never Redis."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bigcrawl.redisdb.scripts import PartitionView
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


LOOK_S: Final = 10.0
STALE_S: Final = 60.0  # older answers are dropped


class DiskSpaceLeft:
    """Watches how many bytes this process can still write, by directory."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = directories
        self._found: dict[str, tuple[float, int]] = {}
        self._is_over = threading.Event()

    def start(self) -> None:
        for name, directory in self._directories.items():
            # A daemon, because an ending process must not wait for a disk.
            threading.Thread(target=self._poll_disk, args=(name, directory), name="bigcrawl-disk", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def free_bytes(self) -> dict[str, float]:
        """Return the free bytes by name, except for disks that have not answered for `STALE_S`."""
        since_s = time.monotonic() - STALE_S
        return {name: free for name, (when_s, free) in self._found.items() if when_s >= since_s}

    def _poll_disk(self, name: str, directory: Path) -> None:
        while not self._is_over.is_set():
            try:
                disk = os.statvfs(directory)
                self._found[name] = (time.monotonic(), disk.f_bavail * disk.f_frsize)
            except OSError:
                self._found.pop(name, None)
            self._is_over.wait(LOOK_S)


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
        """Add up a poll. Must not raise, because the caller also renews the leases."""
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
