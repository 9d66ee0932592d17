"""What a node says of itself, and the leases of its partitions: others may take over what is renewed no more."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.exchange import Exchange
    from bigcrawl.scheduler.node.last_hosts import LastHosts
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.node.workload import Workload
    from bigcrawl.scheduler.owner.ownership import Ownership

RATE_MS = 10_000  # pages a second are told over this long
LEASE_MARGIN_MS = 1_000  # a lease ends for us before it ends for the others


class Heartbeat:
    """The node's report, and the rate that is in it."""

    def __init__(
        self,
        client: RedisClient,
        clock: Clock,
        membership: Membership,
        ownership: Ownership,
        handout: Handout,
        outbox: Outbox,
        exchange: Exchange,
        last_hosts: LastHosts,
        shared_hosts: SharedHosts,
    ) -> None:
        self._client = client
        self._clock = clock
        self._membership = membership
        self._ownership = ownership
        self._handout = handout
        self._outbox = outbox
        self._exchange = exchange
        self._last_hosts = last_hosts
        self._shared_hosts = shared_hosts
        self._samples: deque[tuple[int, int]] = deque()  # when, and how many pages by then

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
            "partitions": len(self._ownership.owned),
            "only_failing": self._last_hosts.is_all,
        }
        await self._membership.beat(self._client, report, self._ownership.owned.keys())
        await self._shared_hosts.meet()

    def _rate(self) -> float:
        """Pages a second that this node has acknowledged of late."""
        now_ms, pages = self._clock.monotonic_ms(), self._exchange.pages
        self._samples.append((now_ms, pages))
        while self._samples[0][0] < now_ms - RATE_MS:
            self._samples.popleft()
        since_ms, before = self._samples[0]
        return 1000 * (pages - before) / (now_ms - since_ms) if now_ms > since_ms else 0.0


class Leases:
    """The leases of the owned partitions; the node hands nothing out after their end."""

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

    def __repr__(self) -> str:
        return f"<Leases of {self._ownership!r}>"

    def begin(self) -> None:
        """A lease that is claimed from now on ends no earlier than one that began now."""
        self._note_renewal(self._clock.monotonic_ms())

    async def renew(self) -> None:
        """See how the owned partitions stand, and renew their leases by it.

        Raises:
            TransientStoreError: Redis is away.
        """
        sent_ms = self._clock.monotonic_ms()
        owned, calls = self._ownership.leases()
        views = await self._client.run(calls)
        unfolded = 0
        for mine, view in zip(owned, views, strict=False):
            if not view.owned:
                self._ownership.lose(mine)
                continue
            mine.note_inbox(view)
            unfolded += mine.unfolded_urls
            if view.next_due_ms >= 0:
                mine.note_due_by(sent_ms + view.next_due_ms - view.now_ms)
        self._workload.note_unfolded(unfolded)
        if not self._ownership.is_reclaiming:
            self._note_renewal(sent_ms)

    def _note_renewal(self, sent_ms: int) -> None:
        self._handout.lease_ends_ms = sent_ms + self._lease_ms - min(LEASE_MARGIN_MS, self._lease_ms // 4)
