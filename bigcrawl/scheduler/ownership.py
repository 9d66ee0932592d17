r"""The partitions this node owns: claimed, stepped, kept durable, released (steps 4 to 8).

not ours -> claimed -> opened -> brought up -> stepped ... -> draining -> released
               ^                                  |
               \________ Redis restarted _________/
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError, ConfigError, OwnershipLostError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import Claim, Identity, Refusal
from bigcrawl.scheduler.codec import order_of
from bigcrawl.scheduler.due_line import DueLine
from bigcrawl.scheduler.owned_partition import EXTRA_DIVISOR_MAX, OwnedPartition
from bigcrawl.scheduler.partition import Partition, PartitionLimits
from bigcrawl.scheduler.traps import TrapRules, turned_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor
    from pathlib import Path

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.drum.files import Files
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.handout import Handout
    from bigcrawl.scheduler.inbox_entry import InboxEntry
    from bigcrawl.scheduler.membership import Membership
    from bigcrawl.scheduler.paces import Paces
    from bigcrawl.scheduler.partition import Step
    from bigcrawl.scheduler.reputation import Reputation

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 64  # partitions whose inboxes are read in one round trip and folded in one go
INBOX_ENTRIES_AT_ONCE = 2_048  # that bring URLs, over all partitions of a round: bounds what it holds in memory
INBOX_ENTRIES_EACH = 256
INBOX_ENTRIES_AT_LEAST = 32  # of each partition that has any; an entry may bring one URL or a thousand
DURABLE_AT_ONCE = 32  # partitions forced to the disk in one go: a few fsyncs, 1 to 2 ms, each
DURABLE_LOOK_MS = 100  # between two looks for them
LATE_MS = 1_000  # a node whose hosts wait for so long after they are due is behind
BEHIND_MS = 2_000  # for so long: no burst of hosts that fell due together
CAUGHT_UP_MS = 1_000
OUTCOMES_LOOK_MS = 1_000  # between two looks for partitions that only have outcomes to fold
RELEASED, NOT_OURS = 1, 0  # replies of release_partition


class Ownership:
    """What this node owns, and the work that owning means."""

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        membership: Membership,
        handout: Handout,
        clock: Clock,
        worker: Executor,
        files: Files,
        reputation: Reputation,
        paces: Paces,
    ) -> None:
        self._config = config
        self._client = client
        self._membership = membership
        self._handout = handout
        self._clock = clock
        self._worker = worker
        self._files = files
        self._reputation = reputation
        self._paces = paces
        traps = TrapRules(config.traps.share, config.traps.divisor)
        frontier = config.frontier
        self._limits = PartitionLimits(frontier.host_hot_urls, traps=traps, priority_bias=frontier.priority_bias)
        self._hot_each = config.frontier.hot_urls // config.crawl.partitions
        self._unconfirmed: set[OwnedPartition] = set()  # with an admit batch that Redis may not have
        self._durable_look_ms = 0  # monotonic
        self._outcomes_look_ms = 0
        self._is_behind = False
        self._behind_since_ms = 0  # since when it is so, or when the divisor last followed
        self._extra_divisor = 1  # one of so many hot URLs may be extra
        self.owned: dict[int, OwnedPartition] = {}
        self.line = DueLine()

    def __repr__(self) -> str:
        return f"<Ownership of {len(self.owned)} partitions>"

    # --- whose is what

    async def rebalance(self) -> None:
        """Claim what this node should own and nobody holds; drain and release what it should not."""
        wanted = self._membership.wanted()
        for partition, mine in self.owned.items():
            mine.draining = partition not in wanted
        await self.release(mine for mine in list(self.owned.values()) if mine.draining)
        await self._claim(sorted(wanted - self.owned.keys()))

    async def release(self, leaving: Iterable[OwnedPartition]) -> None:
        """Release those partitions that hold nothing taken any more."""
        free = [mine for mine in leaving if not self._handout.held.by_partition(mine.keys.partition)]
        # A few at a time: a node that must be gone in seconds leaves what it could not release to the lease.
        for start in range(0, len(free), DURABLE_AT_ONCE):
            await self._release(free[start : start + DURABLE_AT_ONCE])

    async def _release(self, free: list[OwnedPartition]) -> None:
        """Release; a partition of which Redis holds URLs as taken stays: a take may be under way."""
        now_ms = self._clock.monotonic_ms()
        await self._in_thread(lambda: _make_durable(free, now_ms))
        calls = [call for mine in free for call in (mine.publish(), scripts.release_partition(mine.keys, mine.who))]
        for mine in free:
            mine.draining = True
        results = await self._client.run_each(calls)
        for mine, released in zip(free, results[1::2], strict=True):
            if released in (RELEASED, NOT_OURS) and self.owned.get(mine.keys.partition) is mine:
                del self.owned[mine.keys.partition]

    async def reclaim_all(self) -> None:
        """After Redis was restarted: claim every owned partition again and bring both sides in line."""
        await self._claim(sorted(self.owned))
        await self.reconcile()
        for mine in list(self.owned.values()):
            held = self._handout.held.by_partition(mine.keys.partition)
            await mine.count_hot(self._client, [url.host for url in held])

    async def reconcile(self) -> None:
        """Make what Redis holds as taken equal to what this node holds."""
        owned = list(self.owned.values())
        results = await self._client.run_each([self._reconciliation(mine) for mine in owned])
        for mine, result in zip(owned, results, strict=True):
            if isinstance(result, OwnershipLostError):
                self.lose(mine)
            elif isinstance(result, BigcrawlError):
                raise result

    def lose(self, mine: OwnedPartition) -> None:
        """Another node owns the partition: forget everything held for it; nothing if it was claimed again."""
        partition = mine.keys.partition
        if self.owned.get(partition) is mine:
            del self.owned[partition]
            dropped = self._handout.held.drop_partition(partition)
            if mine.draining and not dropped:
                return  # just released, and seen so before the reply was here
            logger.warning(
                "partition %(partition)d has another owner now; %(dropped)d URLs held of it are left to that node",
                {"partition": partition, "dropped": len(dropped)},
            )

    async def _claim(self, partitions: list[int]) -> None:
        if not partitions:
            return
        epochs = await self._in_thread(lambda: {p: Partition.last_epoch(self._directory(p)) for p in partitions})
        results = await self._client.run([self._claim_call(p, epochs[p], "") for p in partitions])
        won = {p: result for p, result in zip(partitions, results, strict=True) if isinstance(result, Claim)}
        dead = {
            p: result.token
            for p, result in zip(partitions, results, strict=True)
            if isinstance(result, Refusal) and self._membership.is_dead(result.token)
        }
        again = await self._client.run([self._claim_call(p, epochs[p], token) for p, token in dead.items()])
        won |= {p: result for p, result in zip(dead, again, strict=True) if isinstance(result, Claim)}
        await self._open(won)

    async def _open(self, won: dict[int, Claim]) -> None:
        """Open won partitions' directories in their new epoch and bring Redis in line."""
        opened = await self._in_thread(lambda: {p: self._open_disk(p, claim) for p, claim in won.items()})
        for partition, claim in won.items():
            keys = partition_keys(self._config.crawl.name, partition)
            who = Identity(self._membership.node, claim.epoch)
            connections = self._config.politeness.host_connections
            mine = OwnedPartition(keys, who, opened[partition], self._hot_each, connections, self.line)
            await mine.bring_up(self._client, claim)
            mine.disk.withholds = self._reputation.withholds
            mine.note_extra_divisor(self._extra_divisor)
            mine.due_ms = self._clock.monotonic_ms()
            mine.durable_ms = self._clock.monotonic_ms()
            self.owned[partition] = mine

    def _open_disk(self, partition: int, claim: Claim) -> Partition:
        directory = self._directory(partition)
        if claim.committed and not Partition.exists(directory):
            raise ConfigError(
                f"Redis knows partition {partition} as begun, but {directory} holds no manifest: bring its files "
                f"back, or start the crawl anew (FRESH=1)"
            )
        budgets, pld_of = self._reputation.budgets, self._reputation.pld_of
        return Partition.open(directory, claim.epoch, self._limits, self._files, budgets=budgets, pld_of=pld_of)

    def _claim_call(self, partition: int, epoch_min: int, dead_token: str) -> scripts.Call[Claim | Refusal]:
        return scripts.claim_partition(
            partition_keys(self._config.crawl.name, partition),
            node=self._membership.node,
            token=self._membership.token,
            lease_ms=self._config.frontier.lease_ms,
            epoch_min=epoch_min,
            dead_token=dead_token,
            deadline_ms=self._config.politeness.fetch_deadline_ms,
            delay_ms=self._config.politeness.host_delay_ms,
        )

    def _reconciliation(self, mine: OwnedPartition) -> scripts.Call[tuple[int, int, int]]:
        partition = mine.keys.partition
        held, ended = (
            [(url.seq, url.host, order_of(url.fields.priority, url.seq), url.member) for url in urls]
            for urls in (self._handout.held.by_partition(partition), self._handout.held.ended_lately(partition))
        )
        rests = self._handout.held.rests(partition, self._clock.monotonic_ms())
        delay_ms = self._config.politeness.host_delay_ms
        return scripts.reconcile_partition(mine.keys, mine.who, delay_ms, held, ended, rests)

    # --- the folds

    async def refresh_budgets(self) -> None:
        """Tell the crawl what the owned partitions count, and let them have the budgets that follow from all counts.

        Raises:
            TransientStoreError: Redis is away; budgets stay as they are.
        """
        if await self._reputation.refresh(self.owned.values()):
            for mine in self.owned.values():
                mine.disk.budgets = self._reputation.budgets
                mine.disk.withholds = self._reputation.withholds
                # What had no budget may have one now; where anything else waits, steps come by themselves.
                mine.inbox_moved = mine.inbox_moved or mine.withheld > 0

    async def step_due(self, *, starved: bool, idle: bool = False) -> int:
        """Run the steps that are due; return the URLs that were admitted.

        Args:
            starved: whether the node has too little to fetch.
            idle: whether it has nothing at all to do.

        Raises:
            TransientStoreError: Redis is away, or the disk is full; nothing is lost.
        """
        await self._admit_pending()
        now_ms = self._clock.monotonic_ms()
        step_ms = self._config.frontier.step_ms
        self._look_at_lateness(now_ms)
        restless = [mine for mine in self.owned.values() if mine.inbox_moved or mine.waiting]
        due = [mine for mine in restless if mine.wants_step(now_ms, step_ms, starved=starved)]
        if idle or now_ms >= self._outcomes_look_ms:
            self._outcomes_look_ms = now_ms + OUTCOMES_LOOK_MS
            wanting = [mine for mine in self.owned.values() if mine.wants_outcomes(now_ms, step_ms, idle=idle)]
            due += [mine for mine in wanting if mine not in due]
        shares = _shares_of(_first_served(due, "stepped_ms", STEPS_AT_ONCE))
        if not shares:
            return 0
        due = list(shares)
        inboxes = await self._read_inboxes(shares)
        hot_sets = [(mine.room, dict(mine.hot), mine.extra_room) for mine in due]
        self._unconfirmed.update(due)  # before anything is committed: whatever fails from here on, it is told again
        steps = await self._in_thread(lambda: _fold_each(due, inboxes, hot_sets))
        calls: list[scripts.Call[Any]] = []
        for mine, inbox, step in zip(due, inboxes, steps, strict=True):
            if not isinstance(step, BigcrawlError):
                calls += mine.after_step(step, len(inbox), now_ms)
                for turned in step.turned:
                    logger.info("%(turned)s", {"turned": turned_text(turned, self._limits.traps)})
        await self._run_owned(calls)
        self._confirm(due)
        if self._paces.are_scaled:
            self._paces.note(await self._in_thread(lambda: self._budgets_of(due, steps)))
        failed = next((step for step in steps if isinstance(step, BigcrawlError)), None)
        if failed is not None:
            raise failed
        return sum(len(step.batch.urls) for step in steps if not isinstance(step, BigcrawlError) and step.batch)

    def _look_at_lateness(self, now_ms: int) -> None:
        """Leave the more extra URLs on disk, the longer the node is behind with what is in Redis.

        There a URL that is found late, with budget left, waits for all whose hosts are due. A node that keeps up has
        the hot set full of whatever waits: it may need every host.
        """
        is_behind = self._handout.late_ms >= LATE_MS
        if is_behind != self._is_behind:
            self._is_behind, self._behind_since_ms = is_behind, now_ms
        divisor = min(2 * self._extra_divisor, EXTRA_DIVISOR_MAX) if is_behind else max(1, self._extra_divisor // 2)
        wait_ms = BEHIND_MS if is_behind else CAUGHT_UP_MS
        if divisor != self._extra_divisor and now_ms - self._behind_since_ms >= wait_ms:
            self._extra_divisor, self._behind_since_ms = divisor, now_ms
            for mine in self.owned.values():
                mine.note_extra_divisor(divisor)

    def _budgets_of(self, due: list[OwnedPartition], steps: list[Step | BigcrawlError]) -> dict[str, int]:
        """The budgets of the hosts that steps have admitted URLs of; called in a worker thread."""
        found: dict[str, int] = {}
        for mine, step in zip(due, steps, strict=True):
            if not isinstance(step, BigcrawlError) and step.batch is not None:
                hosts = list({url.host for url in step.batch.urls})
                found |= zip(hosts, self._reputation.budgets_of(mine.disk, hosts), strict=True)
        return found

    async def budget_of(self, partition: int, host: str) -> int:
        """The budget of a host's PLD, URLs a turn; the least there is where the partition is another node's.

        Raises:
            TransientStoreError, CorruptionError: the partition cannot be read.
        """
        mine = self.owned.get(partition)
        if mine is None:
            return self._config.budget.base
        budgets: list[int] = await self._in_thread(lambda: self._reputation.budgets_of(mine.disk, [host]))
        return budgets[0]

    async def make_durable_due(self) -> None:
        """Force to the disk what has not been for long enough, a few partitions at a time."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._durable_look_ms:
            return
        due = [mine for mine in self.owned.values() if mine.wants_durable(now_ms, self._config.frontier.durable_ms)]
        if len(due) <= DURABLE_AT_ONCE:
            self._durable_look_ms = now_ms + DURABLE_LOOK_MS
        due = _first_served(due, "durable_ms", DURABLE_AT_ONCE)
        if due:
            await self._in_thread(lambda: _make_durable(due, now_ms))
            await self._run_owned([mine.publish() for mine in due])

    async def _admit_pending(self) -> None:
        """Offer again what was committed but not admitted because Redis went away in between."""
        owned = self.owned
        behind = [mine for mine in self._unconfirmed if mine.is_behind and owned.get(mine.keys.partition) is mine]
        self._unconfirmed = set(behind)
        if behind:
            await self._run_owned([call for mine in behind for call in mine.pending_admissions()])
            self._confirm(behind)

    def _confirm(self, stepped: list[OwnedPartition]) -> None:
        now_ms = self._clock.monotonic_ms()
        for mine in stepped:
            if mine.is_behind:
                mine.admitted = mine.disk.batch_number
                mine.due_ms = now_ms
        self._unconfirmed.difference_update(stepped)

    async def _read_inboxes(self, shares: dict[OwnedPartition, int]) -> list[list[InboxEntry]]:
        moved = [mine for mine, share in shares.items() if share]
        replies = await self._client.commands([mine.inbox_command(shares[mine]) for mine in moved])
        read = {mine: mine.parse_inbox(reply) for mine, reply in zip(moved, replies, strict=True)}
        return [read.get(mine, []) for mine in shares]

    async def _run_owned(self, calls: list[scripts.Call[Any]]) -> None:
        """Run calls of owned partitions; a partition that turns out to be lost is dropped."""
        results = await self._client.run_each(calls)
        for call, result in zip(calls, results, strict=True):
            if isinstance(result, OwnershipLostError):
                mine = self.owned.get(_partition_of(call))
                if mine is not None:
                    self.lose(mine)
            elif isinstance(result, BigcrawlError):
                raise result

    def _directory(self, partition: int) -> Path:
        return self._config.crawl.crawl_dir / f"p{partition:04d}"

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker, partial(work))


def _fold_each(
    due: list[OwnedPartition], inboxes: list[list[InboxEntry]], hot_sets: list[tuple[int, dict[str, int], int]]
) -> list[Step | BigcrawlError]:
    """Fold partition after partition; one that fails does not keep the others from being committed."""
    steps: list[Step | BigcrawlError] = []
    for mine, inbox, hot_set in zip(due, inboxes, hot_sets, strict=True):
        try:
            steps.append(mine.fold(inbox, *hot_set))
        except TransientStoreError as error:
            steps.append(error)
    return steps


def _first_served(due: list[OwnedPartition], since: str, most: int) -> list[OwnedPartition]:
    """Those that have waited longest: the first may be due again before the last ones have had their turn."""
    return sorted(due, key=attrgetter(since))[:most]


def _shares_of(due: list[OwnedPartition]) -> dict[OwnedPartition, int]:
    """How many inbox entries to read of which partition in one round.

    A step of thousands of keys costs little more than one of a few, so where much has gathered a round is of few
    partitions with much each: else the fold would fall behind spiders that find many links.
    """
    shares: dict[OwnedPartition, int] = {}
    room = INBOX_ENTRIES_AT_ONCE
    for mine in due:
        share = 0
        if mine.inbox_moved:
            share = min(INBOX_ENTRIES_EACH, max(INBOX_ENTRIES_AT_LEAST, mine.unfolded_urls))
            if share > room:
                break
            room -= share
        elif mine.outcomes_wait:
            share = INBOX_ENTRIES_EACH  # outcomes are small
        shares[mine] = share
    return shares


def _make_durable(partitions: list[OwnedPartition], now_ms: int) -> None:
    for mine in partitions:
        mine.make_durable(now_ms)


def _partition_of(call: scripts.Call[Any]) -> int:
    """The partition that a call's first key names."""
    return int(call.keys[0].partition("}")[0].rpartition(":p")[2])
