from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.fold import Fold

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts


class TakeRoom:
    def __init__(self, parts: Parts) -> None:
        self._clock = parts.crawl.clock
        self._may_take = parts.engine.may_take
        self._shared_hosts = parts.gates.shared_hosts
        self._workload = parts.workload
        self._troubles = parts.troubles
        self._file_work = parts.ownership.file_work
        self._handout = parts.handout
        self._speed = parts.handout.speed
        self._gatekeeper = parts.gates.gatekeeper
        self._progress = parts.progress
        self._membership = parts.crawl.membership
        self._node_id = parts.crawl.node_id
        self._in_process_max = parts.crawl.config.frontier.in_process_max
        self._pages_max = parts.crawl.config.crawl.pages_max

    def urls(self, *, ending: int = 0) -> int:
        """Return how many URLs may be taken now, or once `ending` held ones end; 0 if stopping or without room."""
        if self._workload.is_stopping or not self._shared_hosts.may_take:
            return 0
        if not self._may_take() or self._clock.monotonic_ms() >= self._handout.lease.ends_ms:
            return 0
        if self._workload.is_crowded or self._troubles.is_failing(Fold.name):
            return 0  # links must not pile up in Redis while folding fails, for instance on a full disk
        if self._file_work.stands_still:
            return 0
        room = self._in_process_max - len(self._handout.held) + ending
        if self._speed.limits:
            waiting = self._handout.buffer.waiting + self._handout.lanes.waiting + self._gatekeeper.waiting_count
            room = min(room, self._speed.room(waiting))
        if self._pages_max:
            room = min(room, self._progress.pages_left(1 + self._busy_others()) - self._handout.soon_ended)
        return max(0, room)

    def _busy_others(self) -> int:
        """Return how many other nodes share the rest of BIGCRAWL_MAX_PAGES."""
        reports = self._membership.reports.items()
        return int(sum(report.get("held", 0) > 0 for name, report in reports if name != self._node_id))
