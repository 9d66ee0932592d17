r"""The partitions this node owns: claimed, stepped, kept durable, released (steps 4 to 8).

not ours -> claimed -> opened -> brought up -> stepped ... -> draining -> released
               ^                                  |
               \________ Redis restarted _________/

`claiming` has how they are claimed, opened and released; `folding` steps them, `durable_rounds` keeps their files.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bigcrawl.scheduler.budgets.mirrors import MirrorRules
from bigcrawl.scheduler.budgets.traps import TrapRules
from bigcrawl.scheduler.crawl.missing import MissingPartitions
from bigcrawl.scheduler.owner.claiming.claims import CLAIMED_AT_ONCE, Claims
from bigcrawl.scheduler.owner.claiming.looks import Looks
from bigcrawl.scheduler.owner.claiming.opening import Opener
from bigcrawl.scheduler.owner.claiming.releases import Releases
from bigcrawl.scheduler.owner.damaged import DamagedPartitions
from bigcrawl.scheduler.owner.durable_rounds import DurableRounds
from bigcrawl.scheduler.owner.folding import Folding
from bigcrawl.scheduler.owner.found_sender import FoundSender
from bigcrawl.scheduler.owner.hot.hot_share import HotShare, Lateness
from bigcrawl.scheduler.owner.node_store import NodeStore
from bigcrawl.scheduler.owner.owned_budgets import OwnedBudgets
from bigcrawl.scheduler.owner.owned_table import OwnedTable
from bigcrawl.scheduler.owner.reconciliation import Reconciliation
from bigcrawl.scheduler.partition.file_work import FileThread
from bigcrawl.scheduler.partition.partition import PartitionLimits
from bigcrawl.scheduler.queues.listed_pages import ListedPages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.drum.files import Files
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.arrivals import Arrivals
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.partition.file_work import FileWork
    from bigcrawl.scheduler.records.contents import ContentRow
    from bigcrawl.scheduler.records.held_urls import HeldUrls
    from bigcrawl.store.objects import Objects

T = TypeVar("T")


class Ownership:
    """The partitions of this node. Makes all that works on them, and claims and releases as many as it should own.

    Args:
        config: of the node.
        client: of the crawl's Redis.
        membership: of the node.
        held: the URLs that it has taken.
        late_ms: returns how long hosts wait after they are due.
        clock: of the node.
        worker: one thread, for files.
        files: the file system.
        file_work: watches that thread.
        crawl_budgets: the budgets of PLDs.
        paces: gets the budgets of hosts.
        offer_hint: takes rows for other partitions, which may be lost.
        arrivals: tell what others have put into partitions.
        objects: the store; None if the crawl has none.

    Attributes:
        table: the partitions.
        owned: they, by number.
        claims: claims partitions.
        looks: looks at them in Redis, and renews their leases.
        releases: releases them.
        folding: steps them.
        budgets: the budgets that they use.
        due_heap: the partitions by when they are due.
        hot_share: how many URLs of a host may be hot.
        listed: when pages were changed, as their sites say.
        damaged: partitions that must not be opened.
        reconciliation: brings Redis and the node in line.
        file_work: see above.
        store: keeps durable points in the store.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        membership: Membership,
        held: HeldUrls,
        late_ms: Callable[[], float],
        clock: Clock,
        worker: Executor,
        files: Files,
        file_work: FileWork,
        crawl_budgets: CrawlBudgets,
        paces: Paces,
        offer_hint: Callable[[ContentRow], None],
        arrivals: Arrivals,
        objects: Objects | None = None,
    ) -> None:
        frontier, delay_ms = config.frontier, config.politeness.host_delay_ms
        self._membership = membership
        self.file_work = file_work
        thread = FileThread(worker, file_work)
        traps = TrapRules(config.traps.share, config.traps.divisor)
        mirrors = MirrorRules(config.traps.mirror_share, config.traps.mirror_divisor)
        limits = PartitionLimits(
            frontier.host_hot_urls, traps=traps, mirrors=mirrors, priority_bias=frontier.priority_bias
        )
        self.hot_share = HotShare(delay_ms, limits.low)
        self.damaged = DamagedPartitions(config.crawl, client, clock)
        self.table = table = OwnedTable(client, held, self.damaged)
        self.owned = table.by_number
        self._remembered: dict[str, tuple[tuple[int, int], Any]] = {}
        self.reconciliation = Reconciliation(client, table, held, clock, delay_ms)
        lateness = Lateness()
        self.store = store = NodeStore(
            objects, config.crawl.name, config.store.interval_ms, client, clock, files, thread, table
        )
        self._opener = opener = Opener(
            config,
            client,
            clock,
            files,
            thread,
            limits,
            crawl_budgets,
            lateness,
            store,
            membership.require_place,
        )
        self.due_heap = opener.due_heap
        self._missing = MissingPartitions(config, client, clock, opener.are_there)
        self.claims = Claims(
            config,
            client,
            membership,
            table,
            self.damaged,
            self._missing,
            opener,
            thread,
            self.reconciliation.next_generation,
        )
        self.looks = Looks(config.crawl.name, frontier.lease_ms, client, table, self.claims, arrivals)
        self.listed = ListedPages(config.revisits, client.now_ms)
        self.folding = Folding(
            client,
            config.crawl.partitions,
            clock,
            frontier.step_ms,
            table,
            FoundSender(client, config.crawl.name, config.crawl.partitions, table, arrivals),
            thread,
            self.hot_share,
            crawl_budgets,
            paces,
            limits,
            late_ms,
            lateness,
            self.listed,
            offer_hint,
        )
        self._durable_rounds = DurableRounds(client, table, thread, clock, frontier.durable_ms)
        self.releases = Releases(client, table, held, self._durable_rounds, store)
        self.budgets = OwnedBudgets(crawl_budgets, table, thread, config.budget.base)

    def __repr__(self) -> str:
        return f"<Ownership of {len(self.owned)} partitions>"

    # What follows costs 0.1 us a partition, if anything has happened to one.

    @property
    def hot_hosts(self) -> int:
        """How many hosts have URLs in Redis, without those that are away."""
        return self._remember("hot_hosts", lambda: sum(owned.hot.hosts for owned in self.owned.values()))

    @property
    def has_waiting(self) -> bool:
        """Whether anything waits in inboxes, or URLs on disk."""
        return self._remember("has_waiting", lambda: any(map(_has_waiting, self.owned.values())))

    @property
    def longest(self) -> tuple[str, int] | None:
        """The host with the most URLs that wait, of one partition, and how many; None without any."""
        longest = (owned.longest for owned in self.owned.values() if owned.longest[1])
        return self._remember("longest", lambda: max(longest, key=itemgetter(1), default=None))

    def _remember(self, name: str, count: Callable[[], T]) -> T:
        """What was counted last, unless something has happened since."""
        mark = self.table.news.noted, len(self.owned)
        before = self._remembered.get(name)
        if before is None or before[0] != mark:
            before = self._remembered[name] = mark, count()
        found: T = before[1]
        return found

    async def rebalance(self) -> None:
        """Claim free partitions that this node should own. Drain and release those that it should not.

        When Redis was away for long, the leases of all nodes have run out, and the first node that is back seems to be
        alone. It claims nothing until the others are back too.
        """
        wanted = self._membership.wanted(self.owned.keys())
        for partition, owned in self.owned.items():
            owned.note_wanted(partition in wanted)
        await self.releases.release(owned for owned in list(self.owned.values()) if owned.draining)
        if self._membership.is_patient:
            return
        if (missing := sorted(wanted - self.owned.keys())) and not (self.owned and self.store.is_away):
            # Opening from a store takes long, and no step runs meanwhile, so a busy node does it in portions.
            several = CLAIMED_AT_ONCE if self.owned and self.store.is_used else len(missing)
            free = await self._missing.find_present(await self.damaged.find_sound(missing))
            await self.claims.claim(free[:several])

    def set_apart_by(self, error: CorruptionError) -> bool:
        """Set apart the owned partition whose file an error names. False if no owned partition has that file."""
        for partition, owned in self.owned.items():
            if Path(error.path).is_relative_to(self._opener.directory(partition)):
                self.table.set_apart(owned, error)
                return True
        return False

    async def reclaim_all(self, send_again: Callable[[], Awaitable[None]] | None = None) -> None:
        """Claim every owned partition again after a restart of Redis, and bring both sides in line.

        `send_again` is called in between: afterwards Redis counts pages as ended, and must have their links by then.
        """
        await self.claims.reclaim_all()
        if send_again is not None:
            await send_again()
        await self.reconciliation.settle_forgotten()

    @property
    def next_ms(self) -> int:
        """When a step or a durable point may be due, if nothing happens until then, on the monotonic clock."""
        return min(self.folding.next_ms, self._durable_rounds.next_ms)

    async def make_durable_due(self, checkpoint: int = 0) -> None:
        """Force partitions that are due to the disk, and begin their points in the store. See `DurableRounds`."""
        await self._durable_rounds.run_due(checkpoint)
        self.store.begin_due(checkpoint)


def _has_waiting(owned: OwnedPartition) -> bool:
    return bool(owned.inbox.has_urls or owned.inbox.has_others or owned.schedule.waiting)
