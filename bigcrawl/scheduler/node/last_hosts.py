"""Hosts that fail when nothing else is left (step 12): a crawl does not wait a day for them.

Each node says in its heartbeat whether all it has are URLs of hosts that fail. When all nodes have said so for
`SURE_MS`, so many failures in a row retire a host as `BIGCRAWL_LAST_FAILURES_MAX` says: those that have failed so often
already are retired at once, the others with a later failure, or they answer. What a host that answers brings ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.owner.ownership import Ownership

SURE_MS = 5_000  # several heartbeats: what one node has sent another is known there by then


class LastHosts:
    """Sees when a crawl waits for nothing but hosts that fail.

    Attributes:
        is_all: whether that is so of this node; told to the others.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        handout: Handout,
        ownership: Ownership,
        membership: Membership,
    ) -> None:
        usual, last = config.politeness.host_failures_max, config.politeness.last_failures_max
        self._usual = usual
        self._last = min(usual or last, last) if config.crawl.close_when_empty else 0
        self._partitions = config.crawl.partitions
        self._client = client
        self._clock = clock
        self._handout = handout
        self._ownership = ownership
        self._membership = membership
        self._since_ms: int | None = None  # monotonic
        self.is_all = False

    def __repr__(self) -> str:
        return f"<LastHosts is_all={self.is_all} since={self._since_ms}>"

    async def look(self, *, is_quiet: bool) -> None:
        """See how it is now, and retire hosts if it is time to; no step may run.

        Args:
            is_quiet: whether neither links nor start requests are under way in this node.

        Raises:
            TransientStoreError: Redis is away; hosts are retired with a later look.
        """
        if not self._last:
            return
        self.is_all = is_quiet and self._has_only_failing()
        now_ms = self._clock.monotonic_ms()
        if not (self.is_all and self._say_all()):
            self._since_ms = None
        elif self._since_ms is None:
            self._since_ms = now_ms
        is_end = self._since_ms is not None and now_ms - self._since_ms >= SURE_MS
        self._handout.health.retire_after(self._last if is_end else self._usual)
        if is_end:
            await self._retire()

    def _has_only_failing(self) -> bool:
        owned, fails = self._ownership.owned, self._handout.health.fails
        for held in self._handout.held:
            mine = owned.get(held.partition)
            if not fails(held.host) and (mine is None or held.host not in mine.away.hot_max):
                return False
        return all(mine.has_only_failing(fails) for mine in owned.values())

    def _say_all(self) -> bool:
        reports = self._membership.reports.values()
        owned = sum(report.get("partitions", 0) for report in reports)
        return owned == self._partitions and all(report.get("only_failing") for report in reports)

    async def _retire(self) -> None:
        waited = [mine for mine in self._ownership.owned.values() if mine.away.are_awaited]
        calls = [scripts.retire_hosts(mine.keys, mine.identity, self._last) for mine in waited]
        sort_replies(waited, await self._client.run_each(calls)).raise_failure()
