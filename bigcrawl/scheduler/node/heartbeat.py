"""A node's report to other nodes, and the leases of its partitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.handout.recent import DISK_HUNG, REDIS_AWAY, STOOD_STILL
from bigcrawl.scheduler.node.last_hosts import LastHosts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from bigcrawl.redisdb.scripts import Call, PartitionView
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.handout.recent import RecentWork
    from bigcrawl.scheduler.node.workload import Workload
    from bigcrawl.scheduler.owner.ownership import Ownership

AWAY_MS = 10_000  # a time without a heartbeat that is an event of the crawl
SILENCES = {
    REDIS_AWAY: "had no answer from Redis for {:.0f} s",
    DISK_HUNG: "waited for its disk, which gave no answer, and was silent for {:.0f} s",
    STOOD_STILL: "was silent for {:.0f} s: its process or machine stood still",
}
LEASE_MARGIN_MS = 1_000  # a lease ends this much sooner for this node than for others


class Heartbeat:
    def __init__(
        self,
        crawl: JoinedCrawl,
        ownership: Ownership,
        handout: Handout,
        shared_hosts: SharedHosts,
        report: Callable[[], dict[str, Any]],
        recent: RecentWork,
    ) -> None:
        self._client = crawl.client
        self._membership = crawl.membership
        self._ownership = ownership
        self._handout = handout
        self._shared_hosts = shared_hosts
        self._report = report
        self._recent = recent
        self._silence = ""  # what kept this node from its heartbeats since the last one that was answered
        self.last_hosts = LastHosts(crawl, handout, ownership)

    def __repr__(self) -> str:
        return f"<Heartbeat of {self._membership!r}>"

    async def send(self) -> None:
        report = self._report() | {
            "token": self._membership.token,
            "held": len(self._handout.held),
            "fetches_max": self._handout.crowd.limit,
            "partitions": len(self._ownership.owned),
            "only_failing": self.last_hosts.is_all,
            "stages": Counter(url.stage.value for url in self._handout.held),
            "longest": self._ownership.longest_queue,
        }
        owned, late_ms = self._ownership.owned.keys(), self._handout.ends.late_ms
        beside: list[Call[Any]] = [self._shared_hosts.sign_of_life(), *self._recent.calls()]
        made, sent_ms = self._recent.made(), self._client.now_ms()
        try:
            company, *recent = await self._membership.beat(self._client, report, owned, late_ms, made, beside)
        except BigcrawlError:
            self._silence = self._silence or REDIS_AWAY
            raise
        self._recent.record_summed(made)
        self._recent.record_replies(recent)
        self._record_silence(self._membership.gap_ms, self._client.now_ms() - sent_ms)
        if isinstance(company, BigcrawlError):
            raise company
        await self._shared_hosts.record_company(company)

    def record_hung_disk(self) -> None:
        self._silence = self._silence or DISK_HUNG

    def _record_silence(self, gap_ms: int, waited_ms: int) -> None:
        """Record a long gap between heartbeats as an event, with its first cause; this reply took `waited_ms`."""
        if gap_ms >= AWAY_MS:
            kind = self._silence or (REDIS_AWAY if waited_ms >= gap_ms / 2 else STOOD_STILL)
            self._recent.record_event(kind, SILENCES[kind].format(gap_ms / 1000))
        self._silence = ""


class Leases:
    def __init__(self, crawl: JoinedCrawl, ownership: Ownership, handout: Handout, workload: Workload) -> None:
        self._clock = crawl.clock
        self._ownership = ownership
        self._handout = handout
        self._workload = workload
        self._lease_ms = crawl.config.frontier.lease_ms
        self._tell_views: Callable[[Sequence[PartitionView]], None] | None = None

    def __repr__(self) -> str:
        return f"<Leases of {self._ownership!r}>"

    def begin(self) -> None:
        """Begin the node's lease before the first claim, so that no partition's lease ends earlier."""
        self._record_renewal(self._clock.monotonic_ms())

    def tell_views_to(self, tell: Callable[[Sequence[PartitionView]], None] | None) -> None:
        """Call `tell` with full views of all owned partitions from now on; with None, read only those with events."""
        self._tell_views = tell

    async def renew(self, *, has_written: bool = False) -> None:
        """Renew leases that need it.

        `has_written`: Redis gets writes in this second anyway, so renewing early is cheap.
        """
        sent_ms, looks = self._clock.monotonic_ms(), self._ownership.looks
        tell = self._tell_views
        found = await looks.poll_and_renew(
            sent_ms, holds_urls=len(self._handout.held) > 0, sees_all=tell is not None, has_written=has_written
        )
        for owned, view in found:
            owned.record_inbox(view)
            if owned.away.should_poll(sent_ms):
                self._ownership.table.pending.to_park.add(owned)
            if view.next_due_ms >= 0:
                owned.record_due_by(sent_ms + view.next_due_ms - view.now_ms)
        # All partitions with unfolded URLs were read, because they are in `to_look` until they are folded.
        self._workload.record_unfolded(sum(owned.inbox.unfolded_urls for owned, _ in found))
        if tell is not None:
            tell([view for _, view in found])
        if not self._ownership.claims.is_reclaiming:
            self._record_renewal(min(sent_ms, looks.renewed_ms))

    def _record_renewal(self, sent_ms: int) -> None:
        if not self._handout.lease.is_valid:
            self._handout.break_off()  # no fetch from before may continue under a new lease
        self._handout.lease.renew(sent_ms + self._lease_ms - min(LEASE_MARGIN_MS, self._lease_ms // 4))
