"""Retires hosts after `BIGCRAWL_LAST_FAILURES_MAX` failures once all nodes had only failing hosts for `SURE_MS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies

if TYPE_CHECKING:
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.owner.ownership import Ownership

SURE_MS = 5_000  # several heartbeats; by then other nodes' batches have arrived


class LastHosts:
    def __init__(self, crawl: JoinedCrawl, handout: Handout, ownership: Ownership) -> None:
        config = crawl.config
        usual, last = config.politeness.host_failures_max, config.politeness.last_failures_max
        self._usual = usual
        self._last = min(usual or last, last) if config.crawl.close_when_empty else 0
        self._partitions = config.crawl.partitions
        self._client = crawl.client
        self._clock = crawl.clock
        self._handout = handout
        self._ownership = ownership
        self._membership = crawl.membership
        self._since_ms: int | None = None
        self.is_all = False

    def __repr__(self) -> str:
        return f"<LastHosts is_all={self.is_all} since={self._since_ms}>"

    async def look(self, *, is_quiet: bool) -> None:
        """Retire failing hosts if only their URLs are left and `is_quiet`: nothing is in process. No step may run."""
        if not self._last:
            return
        self.is_all = is_quiet and self._has_only_failing()
        now_ms = self._clock.monotonic_ms()
        if not (self.is_all and self._all_report_so()):
            self._since_ms = None
        elif self._since_ms is None:
            self._since_ms = now_ms
        is_end = self._since_ms is not None and now_ms - self._since_ms >= SURE_MS
        self._handout.health.retire_after(self._last if is_end else self._usual)
        if is_end:
            await self._retire()

    def _has_only_failing(self) -> bool:
        by_number, fails = self._ownership.owned, self._handout.health.fails
        for held in self._handout.held:
            owned = by_number.get(held.partition)
            if not fails(held.host) and (owned is None or held.host not in owned.away.hot_max):
                return False
        return all(owned.has_only_failing(fails) for owned in by_number.values())

    def _all_report_so(self) -> bool:
        reports = self._membership.reports.values()
        owned = sum(report.get("partitions", 0) for report in reports)
        return owned == self._partitions and all(report.get("only_failing") for report in reports)

    async def _retire(self) -> None:
        waited = [owned for owned in self._ownership.owned.values() if owned.away.are_awaited]
        self._ownership.table.pending.to_look.update(waited)
        calls = [scripts.retire_hosts(owned.keys, owned.identity, self._last) for owned in waited]
        sort_replies(waited, await self._client.run_each(calls)).raise_failure()
