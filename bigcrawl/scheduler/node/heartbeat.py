"""A node's report to other nodes, and the leases of its partitions, which others may take over after their end."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.exchange import UrlExchange
    from bigcrawl.scheduler.node.last_hosts import LastHosts
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.node.troubles import Troubles
    from bigcrawl.scheduler.node.workload import Workload
    from bigcrawl.scheduler.owner.ownership import Ownership

TROUBLE_MAX = 300  # characters of the report
RATE_MS = 10_000  # the reported pages a second are a mean over this time
LEASE_MARGIN_MS = 1_000  # how much sooner a lease ends for this node than for others


class Heartbeat:
    """Sends the node's report."""

    def __init__(
        self,
        client: RedisClient,
        clock: Clock,
        membership: Membership,
        ownership: Ownership,
        handout: Handout,
        outbox: Outbox,
        exchange: UrlExchange,
        last_hosts: LastHosts,
        shared_hosts: SharedHosts,
        workload: Workload,
        troubles: Troubles,
        is_paused: Callable[[], bool],
    ) -> None:
        self._client = client
        self._clock = clock
        self._membership = membership
        self._ownership = ownership
        self._handout = handout
        self._outbox = outbox
        self._workload = workload
        self._troubles = troubles
        self._is_paused = is_paused
        self._exchange = exchange
        self._last_hosts = last_hosts
        self._shared_hosts = shared_hosts
        self._samples: deque[tuple[int, int]] = deque()  # the time, and the number of pages by then

    def __repr__(self) -> str:
        return f"<Heartbeat of {self._membership!r}>"

    async def send(self) -> None:
        """Report to the other nodes of this crawl, and to other crawls on the same Redis.

        Raises:
            TransientStoreError: Redis is away.
        """
        report = {
            "token": self._membership.token,
            "held": len(self._handout.held),
            "fetches_max": self._handout.crowd.limit,
            "outbox": self._outbox.waiting,
            "pages": self._exchange.pages,
            "rate": round(self._rate(), 1),
            "is_paused": self._is_paused(),
            "partitions": len(self._ownership.owned),
            "only_failing": self._last_hosts.is_all,
            "stages": Counter(url.stage.value for url in self._handout.held),
            "crowded": self._workload.is_crowded,
            "longest": self._ownership.longest,
            "visits_late_s": round(self._handout.revisits.late_s),
            "trouble": self._troubles.text[:TROUBLE_MAX],
        }
        await self._membership.beat(self._client, report, self._ownership.owned.keys(), self._handout.ends.late_ms)
        await self._shared_hosts.meet()

    def _rate(self) -> float:
        """Pages a second that this node has acknowledged lately."""
        now_ms, pages = self._clock.monotonic_ms(), self._exchange.pages
        self._samples.append((now_ms, pages))
        while self._samples[0][0] < now_ms - RATE_MS:
            self._samples.popleft()
        since_ms, before = self._samples[0]
        return 1000 * (pages - before) / (now_ms - since_ms) if now_ms > since_ms else 0.0


class Leases:
    """The leases of the owned partitions. After their end the node hands nothing out."""

    def __init__(
        self,
        client: RedisClient,
        clock: Clock,
        ownership: Ownership,
        handout: Handout,
        workload: Workload,
        lease_ms: int,
    ) -> None:
        self._client = client
        self._clock = clock
        self._ownership = ownership
        self._handout = handout
        self._workload = workload
        self._lease_ms = lease_ms
        self._tell_views: Callable[[Sequence[PartitionView]], None] | None = None

    def __repr__(self) -> str:
        return f"<Leases of {self._ownership!r}>"

    def begin(self) -> None:
        """Leases are claimed from now on, so none ends earlier than one that begins now."""
        self._note_renewal(self._clock.monotonic_ms())

    def tell_views_to(self, tell: Callable[[Sequence[PartitionView]], None] | None) -> None:
        """Have `tell` called with every look at the owned partitions; None: nobody, so that looks are brief."""
        self._tell_views = tell

    async def renew(self) -> None:
        """Look at owned partitions, and renew leases.

        Raises:
            TransientStoreError: Redis is away.
        """
        sent_ms, looks = self._clock.monotonic_ms(), self._ownership.looks
        tell = self._tell_views
        found = await looks.run(sent_ms, holds_urls=len(self._handout.held) > 0, sees_all=tell is not None)
        for owned, view in found:
            owned.note_inbox(view)
            self._ownership.table.news.to_tend.add(owned)
            if view.next_due_ms >= 0:
                owned.note_due_by(sent_ms + view.next_due_ms - view.now_ms)
        # Where any wait, there are news until they are folded, so all such partitions were looked at.
        self._workload.note_unfolded(sum(owned.inbox.unfolded_urls for owned, _ in found))
        if tell is not None:
            tell([view for _, view in found])
        if not self._ownership.claims.is_reclaiming:
            self._note_renewal(min(sent_ms, looks.renewed_ms))

    def _note_renewal(self, sent_ms: int) -> None:
        if not self._handout.lease.is_valid:
            self._handout.break_off()  # before the lease begins anew, nothing from the time before may go on
        self._handout.lease.renew(sent_ms + self._lease_ms - min(LEASE_MARGIN_MS, self._lease_ms // 4))
