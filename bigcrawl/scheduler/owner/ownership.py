r"""The partitions this node owns: claimed, stepped, kept durable, released.

not ours -> claimed -> opened -> brought up -> stepped ... -> draining -> released
               ^                                  |
               \________ Redis restarted _________/

`claiming` has how they are claimed, opened and released; `folding` steps them, `durable_rounds` keeps their files.
"""

from __future__ import annotations

import asyncio
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bigcrawl.scheduler.crawl.missing import MissingPartitions
from bigcrawl.scheduler.owner.claiming.claims import OPENED_AT_ONCE, Claims, PartitionReleases
from bigcrawl.scheduler.owner.claiming.looks import PartitionPolls
from bigcrawl.scheduler.owner.claiming.opening import Opener
from bigcrawl.scheduler.owner.damaged import DamagedPartitions
from bigcrawl.scheduler.owner.durable_rounds import DurableRounds
from bigcrawl.scheduler.owner.folding import Folding
from bigcrawl.scheduler.owner.hot.hot_share import HotShare, LatenessCheck
from bigcrawl.scheduler.owner.no_store import NoStore
from bigcrawl.scheduler.owner.owed_sender import OwedSender
from bigcrawl.scheduler.owner.owned_budgets import OwnedBudgets
from bigcrawl.scheduler.owner.owned_table import OwnedTable
from bigcrawl.scheduler.owner.reconciliation import Reconciliation
from bigcrawl.scheduler.partition.file_work import FileThread
from bigcrawl.scheduler.partition.fold.feature import features_of
from bigcrawl.scheduler.partition.partition import PartitionLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.observed import ObservedRows

T = TypeVar("T")


class Ownership:
    """The partitions of this node. Makes all parts that work on them, claims those it should own, and releases others.

    Attributes:
        looks: reads their state in Redis, and renews their leases.
        lock: its holder may step, claim and release partitions.
        hot_share: how many URLs of a host may be hot.
        damaged: partitions that must not be opened.
    """

    def __init__(
        self,
        crawl: JoinedCrawl,
        handout: Handout,
        offer_hint: Callable[[ObservedRows], None],
        may_rest: Callable[[], bool],
        crawl_budgets: CrawlBudgets,
        tell_ended: Callable[[OwnedPartition, list[HeldUrl]], None],
    ) -> None:
        config, client, clock, held = crawl.config, crawl.client, crawl.clock, handout.held
        frontier, delay_ms = config.frontier, config.politeness.host_delay_ms
        self._client = client
        self._membership = crawl.membership
        self.lock = asyncio.Lock()
        self._thread = thread = FileThread(clock, frontier.lease_ms, may_rest)
        self.file_work = thread.work
        self.features = features_of(config)
        limits = PartitionLimits(
            frontier.host_hot_urls,
            priority_bias=frontier.priority_bias,
            front_queues=frontier.front_queues,
            features=self.features,
        )
        self.hot_share = HotShare(delay_ms, limits.host_hot_low_now)
        lateness = LatenessCheck(lambda: handout.ends.late_ms)
        self.damaged = DamagedPartitions(config.crawl, client, clock)
        self.table = table = OwnedTable(client, held, self.damaged)
        self.owned = table.by_number
        self._remembered: dict[str, tuple[tuple[int, int], Any]] = {}
        self._balanced: tuple[frozenset[int], int, int, int] | None = None  # where nothing is left to do
        self.reconciliation = Reconciliation(client, table, held, clock, delay_ms, tell_ended)
        self.crawl_budgets = crawl_budgets
        self.budgets = OwnedBudgets(self.crawl_budgets, table, thread, handout.paces, config.budget.base)
        self.store = store = _store_of(crawl, thread, table)
        self._opener = opener = Opener(crawl, thread, limits, self.crawl_budgets, lateness, store)
        self.due_heap = opener.due_heap
        self._missing = MissingPartitions(config, client, clock, opener.are_there)
        self.claims = Claims(crawl, table, self._missing, opener, thread, self.reconciliation.next_generation)
        self.looks = PartitionPolls(crawl, table, self.claims)
        owed_sender = OwedSender(crawl, table, offer_hint)
        self.folding = Folding(crawl, table, owed_sender, thread, self.hot_share, lateness, self.budgets)
        self._durable_rounds = DurableRounds(client, table, thread, clock, frontier.durable_ms)
        self.releases = PartitionReleases(client, table, held, self._durable_rounds, store)

    def __repr__(self) -> str:
        return f"<Ownership of {len(self.owned)} partitions>"

    @property
    def wants_modified(self) -> bool:
        """Whether a feature uses the times of change that sites claim for their pages."""
        return any(feature.wants_modified for feature in self.features)

    def record_modified(self, pages: Sequence[tuple[int, int]]) -> None:
        """Record when pages, by key, have changed according to their sites."""
        for feature in self.features:
            feature.record_modified(pages, self._client.now_ms() // 1000)

    @property
    def hot_hosts(self) -> int:
        """The number of hosts with URLs in Redis, without those that are away."""
        return self._remember_change("hot_hosts", lambda: sum(owned.hot.hosts for owned in self.owned.values()))

    @property
    def has_waiting(self) -> bool:
        return self._remember_change("has_waiting", lambda: any(map(_has_waiting, self.owned.values())))

    @property
    def longest_queue(self) -> tuple[str, int] | None:
        """The host with the most waiting URLs, in one partition, and their number; None without any."""
        longest = (owned.longest for owned in self.owned.values() if owned.longest[1])
        return self._remember_change("longest", lambda: max(longest, key=itemgetter(1), default=None))

    def _remember_change(self, name: str, count: Callable[[], T]) -> T:
        mark = self.table.pending.events, len(self.owned)
        before = self._remembered.get(name)
        if before is None or before[0] != mark:
            before = self._remembered[name] = mark, count()
        found: T = before[1]
        return found

    async def rebalance(self) -> None:
        """Claim free partitions that this node should own. Drain and release those that it should not.

        After a long outage of Redis all leases have run out, and the first node that is back seems to be alone. It
        claims nothing until the others are back.
        """
        wanted = self._membership.wanted(self.owned.keys())
        mark = wanted, self.table.claims, self.table.damages, len(self.owned)
        if mark == self._balanced:
            return
        self._balanced = None
        for partition, owned in self.owned.items():
            owned.record_wanted(partition in wanted)
        await self.releases.release([owned for owned in self.owned.values() if owned.draining])
        if self._membership.lost_contact_recently:
            return
        if (missing := sorted(wanted - self.owned.keys())) and not (self.owned and self.store.is_away):
            # Opening from a store takes long, and no step runs meanwhile, so a busy node does it in portions.
            several = OPENED_AT_ONCE if self.owned and self.store.is_used else len(missing)
            free = await self._missing.find_present(await self.damaged.find_sound(missing))
            await self.claims.claim(free[:several])
        if wanted == self.owned.keys():
            self._balanced = wanted, self.table.claims, self.table.damages, len(self.owned)

    async def close(self, *, wait: bool) -> None:
        await self.store.close()
        self._thread.close(wait=wait)

    def set_apart_by(self, error: CorruptionError) -> bool:
        """Set apart the owned partition whose file an error names. False if no owned partition has that file."""
        for partition, owned in self.owned.items():
            if Path(error.path).is_relative_to(self._opener.directory(partition)):
                self.table.set_apart(owned, error)
                return True
        return False

    async def reclaim_all(self, send_again: Callable[[], Awaitable[None]] | None = None) -> None:
        """Claim every owned partition again after a restart of Redis, and reconcile each with it.

        `send_again` is called in between: later, Redis would count pages as ended whose links it lacks.
        """
        await self.claims.reclaim_all()
        if send_again is not None:
            await send_again()
        await self.reconciliation.settle_forgotten()

    @property
    def next_ms(self) -> int:
        """When a step or a durable point may become due without further events, on the monotonic clock."""
        return min(self.folding.next_ms, self._durable_rounds.next_ms)

    async def make_durable_due(self, checkpoint: int = 0) -> None:
        """Force due partitions to disk, and start writing them to the store. See `DurableRounds`."""
        await self._durable_rounds.run_due(checkpoint)
        self.store.begin_due(checkpoint)


def _has_waiting(owned: OwnedPartition) -> bool:
    return bool(owned.inbox.has_urls or owned.inbox.has_others or owned.schedule.waiting)


def _store_of(crawl: JoinedCrawl, thread: FileThread, table: OwnedTable) -> NoStore:
    if crawl.objects is None:
        return NoStore()
    from bigcrawl.scheduler.owner.node_store import NodeStore

    return NodeStore(crawl.objects, crawl, thread, table)
