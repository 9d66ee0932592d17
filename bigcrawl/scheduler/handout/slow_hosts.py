"""Limits slow hosts to a share of a node's fetches, so that they do not hold up the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.scheduler.records.outcomes import ABORTED

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.concurrency import ConcurrencyLimit
    from bigcrawl.scheduler.records.held import HeldUrl

HOSTS_REMEMBERED: Final = 100_000
FETCHES_PART: Final = 4
NEVER_MS: Final = 1 << 62


class SlowHosts:
    def __init__(self, after_ms: int, crowd: ConcurrencyLimit) -> None:
        """A host is slow if a download takes longer than `after_ms`; 0: no host is."""
        self._crowd = crowd
        self.fetching: set[HeldUrl] = set()
        self.after_ms = after_ms or NEVER_MS
        self.hosts: BoundedDict[str, None] = BoundedDict(HOSTS_REMEMBERED)

    def have_room_for(self, host: str) -> bool:
        return host not in self.hosts or len(self.fetching) < max(1, self._crowd.limit_for_slow_hosts // FETCHES_PART)

    def record_start(self, held: HeldUrl) -> None:
        if held.host in self.hosts:
            self.fetching.add(held)

    def leave(self, held: HeldUrl) -> None:
        self.fetching.discard(held)

    def record_end(self, held: HeldUrl) -> None:
        self.leave(held)
        if held.outcome == ABORTED:
            return
        if held.download_ms > self.after_ms:
            self.hosts.remember(held.host, None)
        else:
            self.hosts.pop(held.host, None)
