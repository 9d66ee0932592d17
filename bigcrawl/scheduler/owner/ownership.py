r"""The partitions this node owns: claimed, stepped, kept durable, released (steps 4 to 8).

not ours -> claimed -> opened -> brought up -> stepped ... -> draining -> released
               ^                                  |
               \________ Redis restarted _________/

`claims` claims them, `opening` and `bring_up` open them, `folding` steps them, `durable_rounds` keeps their files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.budgets.mirrors import MirrorRules
from bigcrawl.scheduler.budgets.traps import TrapRules
from bigcrawl.scheduler.crawl.missing import MissingPartitions
from bigcrawl.scheduler.owner.claims import CLAIMED_AT_ONCE, Claims
from bigcrawl.scheduler.owner.damaged import DamagedPartitions
from bigcrawl.scheduler.owner.durable_rounds import DURABLE_AT_ONCE, DurableRounds
from bigcrawl.scheduler.owner.folding import Folding
from bigcrawl.scheduler.owner.found_sender import FoundSender
from bigcrawl.scheduler.owner.hot.hot_share import HotShare, Lateness
from bigcrawl.scheduler.owner.node_store import NodeStore
from bigcrawl.scheduler.owner.opening import Opener
from bigcrawl.scheduler.owner.owned_table import OwnedTable
from bigcrawl.scheduler.owner.reconciliation import Reconciliation
from bigcrawl.scheduler.partition.file_work import FileThread
from bigcrawl.scheduler.partition.partition import PartitionLimits
from bigcrawl.scheduler.queues.listed_pages import ListedPages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.drum.files import Files
    from bigcrawl.exceptions import CorruptionError
    from bigcrawl.histogram import Histogram
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.partition.file_work import FileWork
    from bigcrawl.scheduler.records.contents import ContentRow
    from bigcrawl.scheduler.records.held_urls import HeldUrls
    from bigcrawl.store.objects import Objects

RELEASED, NOT_OURS = 1, 0  # replies of release_partition


class Ownership:
    """The partitions of this node, and all work on them that the node's loops ask for.

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
        objects: the store; None if the crawl has none.

    Attributes:
        owned: the partitions, by number.
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
        objects: Objects | None = None,
    ) -> None:
        frontier, delay_ms = config.frontier, config.politeness.host_delay_ms
        self._config = config
        self._client = client
        self._membership = membership
        self._held = held
        self._crawl_budgets = crawl_budgets
        self.file_work = file_work
        self._thread = thread = FileThread(worker, file_work)
        traps = TrapRules(config.traps.share, config.traps.divisor)
        mirrors = MirrorRules(config.traps.mirror_share, config.traps.mirror_divisor)
        limits = PartitionLimits(
            frontier.host_hot_urls, traps=traps, mirrors=mirrors, priority_bias=frontier.priority_bias
        )
        self.hot_share = HotShare(delay_ms, limits.low)
        self.reconciliation = Reconciliation(client, held, clock, delay_ms)
        self.damaged = DamagedPartitions(config.crawl, client, clock)
        self._table = table = OwnedTable(client, held, self.damaged)
        self.owned = table.by_number
        lateness = Lateness()
        self.store = store = NodeStore(
            objects, config.crawl.name, config.store.interval_ms, client, clock, files, thread, table
        )
        self._opener = opener = Opener(config, client, clock, files, thread, limits, crawl_budgets, lateness, store)
        self.due_heap = opener.due_heap
        self._missing = MissingPartitions(config, client, clock, opener.are_there)
        self._claims = Claims(
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
        self.listed = ListedPages(config.revisits, client.now_ms)
        self._folding = Folding(
            client,
            config.crawl.partitions,
            clock,
            frontier.step_ms,
            table,
            FoundSender(client, config.crawl.name, config.crawl.partitions, clock, table),
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
        self._durable_rounds = DurableRounds(table, thread, clock, frontier.durable_ms)

    def __repr__(self) -> str:
        return f"<Ownership of {len(self.owned)} partitions>"

    @property
    def step_times(self) -> Histogram:
        """How long the file work of steps took."""
        return self._folding.step_times

    # --- claiming and releasing

    async def rebalance(self) -> None:
        """Claim free partitions that this node should own. Drain and release those that it should not.

        When Redis was away for long, the leases of all nodes have run out, and the first node that is back seems to be
        alone. It claims nothing until the others are back too.
        """
        wanted = self._membership.wanted(self.owned.keys())
        for partition, owned in self.owned.items():
            owned.note_wanted(partition in wanted)
        await self.release(owned for owned in list(self.owned.values()) if owned.draining)
        if self._membership.is_patient:
            return
        if (missing := sorted(wanted - self.owned.keys())) and not (self.owned and self.store.is_away):
            # Opening from a store takes long, and no step runs meanwhile, so a busy node does it in portions.
            several = CLAIMED_AT_ONCE if self.owned and self.store.is_used else len(missing)
            free = await self._missing.find_present(await self.damaged.find_sound(missing))
            await self._claims.claim(free[:several])

    async def release(self, leaving: Iterable[OwnedPartition]) -> None:
        """Release those of the partitions of which the node holds no URL."""
        free = [owned for owned in leaving if not self._held.by_partition(owned.keys.partition)]
        # A few at a time. A node that must exit within seconds leaves the rest to their leases.
        for start in range(0, len(free), DURABLE_AT_ONCE):
            await self._release(free[start : start + DURABLE_AT_ONCE])

    async def _release(self, free: list[OwnedPartition]) -> None:
        """Release partitions. One with taken URLs in Redis stays, because a take may be under way."""
        await self._durable_rounds.force(free)
        await self.store.put_last(free)
        calls = [call for p in free for call in (p.publish(), scripts.release_partition(p.keys, p.identity))]
        for owned in free:
            owned.drain()
        results = await self._client.run_each(calls)
        for owned, released in zip(free, results[1::2], strict=True):
            if released in (RELEASED, NOT_OURS):
                self._table.remove(owned)

    def set_apart_by(self, error: CorruptionError) -> bool:
        """Set apart the owned partition whose file an error names. False if no owned partition has that file."""
        for partition, owned in self.owned.items():
            if Path(error.path).is_relative_to(self._opener.directory(partition)):
                self._table.set_apart(owned, error)
                return True
        return False

    def lose(self, owned: OwnedPartition) -> None:
        """Remove a partition that another node owns, with all that is held of it, unless it was claimed again."""
        self._table.lose(owned)

    # --- leases

    @property
    def has_claimed(self) -> bool:
        """Whether Redis may name this node as an owner."""
        return self._claims.has_claimed

    @property
    def is_reclaiming(self) -> bool:
        """Whether Redis was restarted, and some partitions are not claimed again yet."""
        return self._claims.is_reclaiming

    def leases(self, *, is_brief: bool) -> tuple[list[OwnedPartition], list[scripts.Call[scripts.PartitionView]]]:
        """The owned partitions, and the calls that look at them and renew their leases. See `Claims.leases`."""
        return self._claims.leases(is_brief=is_brief)

    # --- comparing with Redis

    async def reclaim_all(self) -> None:
        """Claim every owned partition again after a restart of Redis, and bring both sides in line."""
        await self._claims.reclaim_all()
        await self._settle(set(self.owned), has_forgotten=True)

    async def settle_doubts(self) -> None:
        """Bring both sides in line for partitions with a lost reply. Nothing may be taken or ended meanwhile.

        Raises:
            TransientStoreError: Redis is unreachable. The partitions stay in doubt.
        """
        await self._settle(self._client.in_doubt, has_forgotten=False)

    async def _settle(self, partitions: set[int], *, has_forgotten: bool) -> None:
        client = self._client
        before = client.take_doubts()  # what comes into doubt from here on is compared next time
        try:
            doubtful = [self.owned[partition] for partition in sorted(partitions) if partition in self.owned]
            for lost in await self.reconciliation.run(doubtful, has_forgotten=has_forgotten):
                self.lose(lost)
        except BaseException:
            client.return_doubts(before)
            raise

    # --- steps and budgets

    async def step_due(self, *, starved: bool, idle: bool = False) -> int:
        """Run the steps that are due. See `Folding.step_due`."""
        return await self._folding.step_due(starved=starved, idle=idle)

    async def make_durable_due(self, checkpoint: int = 0) -> None:
        """Force partitions that are due to the disk, and begin their points in the store. See `DurableRounds`."""
        await self._durable_rounds.run_due(checkpoint)
        self.store.begin_due(checkpoint)

    async def refresh_budgets(self) -> None:
        """Publish what the owned partitions count, and give them the budgets that follow from all nodes' counts.

        Raises:
            TransientStoreError: Redis is unreachable. Budgets stay as they are.
        """
        if await self._crawl_budgets.refresh(self.owned.values()):
            for owned in self.owned.values():
                self._crawl_budgets.give_to(owned.disk)
                owned.note_budgets()

    async def budget_of(self, partition: int, host: str) -> int:
        """The budget of a host's PLD in URLs a turn. The least budget if another node owns the partition.

        Raises:
            TransientStoreError, CorruptionError: the partition cannot be read.
        """
        owned = self.owned.get(partition)
        if owned is None:
            return self._config.budget.base
        [budget] = await self._thread.run(lambda: self._crawl_budgets.budgets_of(owned.disk, [host]))
        return budget
