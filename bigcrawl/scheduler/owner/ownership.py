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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import (
    BigcrawlError,
    ConfigError,
    CorruptionError,
    OwnershipLostError,
    TransientStoreError,
)
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisRefusedError
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import Claim, Identity, Refusal
from bigcrawl.scheduler.budgets.traps import TrapRules, turned_text
from bigcrawl.scheduler.crawl.in_process import UNKNOWN
from bigcrawl.scheduler.crawl.membership import LastOwner
from bigcrawl.scheduler.owner.damaged import DamagedPartitions, is_damage
from bigcrawl.scheduler.owner.due_heap import DueLine
from bigcrawl.scheduler.owner.hot_share import HotShare
from bigcrawl.scheduler.owner.owned_partition import EXTRA_DIVISOR_MAX, NEVER_MS, OwnedPartition
from bigcrawl.scheduler.owner.reconciliation import Reconciliation
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.suspicion import Suspicion

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from concurrent.futures import Executor

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.drum.files import Files
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.owner.crawl_budgets import Reputation
    from bigcrawl.scheduler.owner.file_work import FileWork
    from bigcrawl.scheduler.partition.partition import Step
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 64  # partitions whose inboxes are read in one round trip and folded in one go
INBOX_ENTRIES_AT_ONCE = 2_048  # that bring URLs, over all partitions of a round: bounds what it holds in memory
INBOX_ENTRIES_EACH = 256
INBOX_ENTRIES_AT_LEAST = 32  # of each partition that has any; an entry may bring one URL or a thousand
CLAIMED_AT_ONCE = 32  # partitions: what is claimed should be open, and its lease renewed, before long
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
        file_work: FileWork,
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
        self.file_work = file_work
        self._reputation = reputation
        self._paces = paces
        traps = TrapRules(config.traps.share, config.traps.divisor)
        frontier = config.frontier
        self._limits = PartitionLimits(frontier.host_hot_urls, traps=traps, priority_bias=frontier.priority_bias)
        self._loss_ms = config.frontier.redis_loss_ms
        self.hot_share = HotShare(config.politeness.host_delay_ms, self._limits.low)
        self._hot_each = config.frontier.hot_urls // config.crawl.partitions
        self._unconfirmed: set[OwnedPartition] = set()  # with an admit batch that Redis may not have
        self._durable_look_ms = 0  # monotonic
        self._outcomes_look_ms = 0
        delay_ms = config.politeness.host_delay_ms
        self.reconciliation = Reconciliation(client, handout.held, clock, delay_ms)
        self._is_behind = False
        self._behind_since_ms = 0  # since when it is so, or when the divisor last followed
        self._extra_divisor = 1  # one of so many hot URLs may be extra
        self._stale: set[OwnedPartition] = set()  # Redis was restarted, and they are not claimed again yet
        self._opening: dict[int, Identity] = {}  # claimed, and not opened yet
        self.damaged = DamagedPartitions(config.crawl, client, clock)
        self.has_claimed = False  # Redis may name this node
        self.owned: dict[int, OwnedPartition] = {}
        self.line: DueLine[OwnedPartition] = DueLine()

    def __repr__(self) -> str:
        return f"<Ownership of {len(self.owned)} partitions>"

    # --- whose is what

    async def rebalance(self) -> None:
        """Claim what this node should own and nobody holds; drain and release what it should not."""
        wanted = self._membership.wanted()
        for partition, mine in self.owned.items():
            mine.draining = partition not in wanted or mine.is_damaged
        await self.release(mine for mine in list(self.owned.values()) if mine.draining)
        if missing := sorted(wanted - self.owned.keys()):
            await self._claim(await self.damaged.sound(missing))

    async def release(self, leaving: Iterable[OwnedPartition]) -> None:
        """Release those partitions that hold nothing taken any more."""
        free = [mine for mine in leaving if not self._handout.held.by_partition(mine.keys.partition)]
        # A few at a time: a node that must be gone in seconds leaves what it could not release to the lease.
        for start in range(0, len(free), DURABLE_AT_ONCE):
            await self._release(free[start : start + DURABLE_AT_ONCE])

    async def _release(self, free: list[OwnedPartition]) -> None:
        """Release; a partition of which Redis holds URLs as taken stays: a take may be under way."""
        await self._make_durable(free)
        calls = [call for mine in free for call in (mine.publish(), scripts.release_partition(mine.keys, mine.who))]
        for mine in free:
            mine.draining = True
        results = await self._client.run_each(calls)
        for mine, released in zip(free, results[1::2], strict=True):
            if released in (RELEASED, NOT_OURS) and self.owned.get(mine.keys.partition) is mine:
                del self.owned[mine.keys.partition]

    async def reclaim_all(self) -> None:
        """After Redis was restarted: claim every owned partition again and bring both sides in line."""
        self._stale = set(self.owned.values())
        await self._claim(sorted(self.owned))
        self._stale = set()
        await self._settle(set(self.owned), has_forgotten=True)

    async def settle_doubts(self) -> None:
        """Bring both sides in line where a call's reply is lost; nothing may be taken or ended meanwhile.

        Raises:
            TransientStoreError: Redis is away; what is in doubt stays so.
        """
        await self._settle(self._client.in_doubt, has_forgotten=False)

    async def _settle(self, partitions: set[int], *, has_forgotten: bool) -> None:
        client = self._client
        before, client.in_doubt = client.in_doubt, set()  # what comes into doubt meanwhile is compared next time
        try:
            mine = [self.owned[partition] for partition in sorted(partitions) if partition in self.owned]
            for lost in await self.reconciliation.run(mine, has_forgotten=has_forgotten):
                self.lose(lost)
        except BaseException:
            client.in_doubt |= before
            raise

    def set_apart(self, mine: OwnedPartition, error: BigcrawlError) -> None:
        """Do nothing more with a partition whose files are damaged, and let it go when it has drained."""
        if not mine.is_damaged:
            mine.is_damaged = mine.draining = True
            self.damaged.note(mine.keys.partition, error)

    def set_apart_by(self, error: CorruptionError) -> bool:
        """Set the owned partition apart whose file an error names; False when it is none's."""
        for partition, mine in self.owned.items():
            if Path(error.path).is_relative_to(self._directory(partition)):
                self.set_apart(mine, error)
                return True
        return False

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

    @property
    def is_reclaiming(self) -> bool:
        """Whether Redis was restarted, and some of what is owned is not claimed again yet."""
        return bool(self._stale)

    def leases(self) -> tuple[list[OwnedPartition], list[scripts.Call[scripts.PartitionView]]]:
        """The owned partitions, and the calls that look at them and renew their leases.

        More calls follow, for partitions that are claimed and not open yet: opening many takes long.
        """
        owned = [mine for mine in self.owned.values() if mine not in self._stale]
        opening = [(partition_keys(self._config.crawl.name, p), who) for p, who in self._opening.items()]
        named = [(mine.keys, mine.who) for mine in owned] + opening
        return owned, [scripts.look_partition(*names, self._config.frontier.lease_ms) for names in named]

    async def _claim(self, partitions: list[int]) -> None:
        """Claim partitions, and open those that were won."""
        for start in range(0, len(partitions), CLAIMED_AT_ONCE):
            await self._claim_some(partitions[start : start + CLAIMED_AT_ONCE])

    async def _claim_some(self, partitions: list[int]) -> None:
        self.has_claimed = True
        epochs = await self._in_thread(lambda: {p: Partition.last_epoch(self._directory(p)) for p in partitions})
        results = await self._client.run([self._claim_call(p, epochs[p]) for p in partitions])
        won = {p: result for p, result in zip(partitions, results, strict=True) if isinstance(result, Claim)}
        refused = {p: r for p, r in zip(partitions, results, strict=True) if isinstance(r, Refusal)}
        tokens, membership = {refusal.token for refusal in refused.values()}, self._membership
        owners = await self._in_thread(lambda: {token: LastOwner.of(token, membership) for token in tokens})
        free = {p: owners[r.token] for p, r in refused.items() if owners[r.token].is_dead or r.left_ms <= 0}
        again = await self._client.run([self._claim_call(p, epochs[p], last) for p, last in free.items()])
        won |= {p: result for p, result in zip(free, again, strict=True) if isinstance(result, Claim)}
        await self._open(won)

    async def _open(self, won: dict[int, Claim]) -> None:
        """Open won partitions one by one; what another node took over meanwhile is left to it."""
        self._opening = {p: Identity(self._membership.node, claim.epoch, claim.generation) for p, claim in won.items()}
        try:
            for partition, claim in won.items():
                try:
                    self.owned[partition] = await self._opened(partition, claim)
                except OwnershipLostError as error:
                    logger.info("%(error)s: it is left to its new owner", {"error": error})
                    if partition in self.owned:
                        self.lose(self.owned[partition])
                except BigcrawlError as error:
                    if not is_damage(error):
                        raise
                    await self._leave_damaged(partition, error)
                del self._opening[partition]
        finally:
            self._opening = {}

    async def _leave_damaged(self, partition: int, error: BigcrawlError) -> None:
        """A partition that was won cannot be opened: mark it, so that nobody else tries, and let it go."""
        self.damaged.note(partition, error)
        if partition in self.owned:
            self.lose(self.owned[partition])
        keys, who = partition_keys(self._config.crawl.name, partition), self._opening[partition]
        mark = scripts.trim_partition(keys, who, NO_INBOX_ID, 0, {"damaged": 1})
        await self._client.run_each([mark, scripts.release_partition(keys, who)])

    async def _opened(self, partition: int, claim: Claim) -> OwnedPartition:
        """Open a won partition's directory in its new epoch and bring Redis in line."""
        disk = await self._in_thread(lambda: self._open_disk(partition, claim))
        keys, who = partition_keys(self._config.crawl.name, partition), self._opening[partition]
        connections = self._config.politeness.host_connections
        mine = OwnedPartition(keys, who, disk, self._hot_each, connections, self.line, self._loss_ms)
        due_in_ms = await mine.bring_up(self._client, claim)
        mine.suspects = {seq: Suspicion.read(text) for seq, text in claim.deaths.items()}
        mine.disk.withholds = self._reputation.withholds
        if partition in self.owned:
            mine.moved = self.owned[partition].moved
        mine.note_extra_divisor(self._extra_divisor)
        mine.due_ms = self._clock.monotonic_ms() + due_in_ms if due_in_ms < NEVER_MS else NEVER_MS
        mine.durable_ms = self._clock.monotonic_ms()
        return mine

    def _open_disk(self, partition: int, claim: Claim) -> Partition:
        directory = self._directory(partition)
        if claim.committed and not Partition.exists(directory):
            raise ConfigError(
                f"Redis knows partition {partition} as begun, but {directory} holds no manifest: bring its files "
                f"back, or start the crawl anew (BIGCRAWL_FRESH=1)"
            )
        reputation = self._reputation
        return Partition.open(
            directory,
            claim.epoch,
            self._limits,
            self._files,
            budgets=reputation.budgets,
            pld_of=reputation.pld_of,
            pld_key=reputation.pld_key,
        )

    def _claim_call(
        self, partition: int, epoch_min: int, last: LastOwner | None = None
    ) -> scripts.Call[Claim | Refusal]:
        return scripts.claim_partition(
            partition_keys(self._config.crawl.name, partition),
            node=self._membership.node,
            token=self._membership.token,
            lease_ms=self._config.frontier.lease_ms,
            epoch_min=epoch_min,
            dead_token=last.token if last is not None and last.is_dead else "",
            deadline_ms=self._config.politeness.fetch_deadline_ms,
            delay_ms=self._config.politeness.host_delay_ms,
            generation=self.reconciliation.next_generation(),
            told_of=last.token if last is not None else "",
            in_process=last.in_process_of(partition) if last is not None else UNKNOWN,
        )

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
        refused = await self._admit_pending()
        behind = frozenset(self._unconfirmed)
        now_ms = self._clock.monotonic_ms()
        step_ms = self._config.frontier.step_ms
        self._look_at_lateness(now_ms)
        sound = [mine for mine in self.owned.values() if not mine.is_damaged]
        restless = [mine for mine in sound if mine.inbox_moved or mine.waiting]
        due = [mine for mine in restless if mine.wants_step(now_ms, step_ms, starved=starved)]
        if idle or now_ms >= self._outcomes_look_ms:
            self._outcomes_look_ms = now_ms + OUTCOMES_LOOK_MS
            wanting = [mine for mine in sound if mine.wants_outcomes(now_ms, step_ms, idle=idle)]
            due += [mine for mine in wanting if mine not in due]
        shares = _shares_of(_first_served(due, "stepped_ms", STEPS_AT_ONCE))
        admitted = await self._step_each(shares, behind, now_ms) if shares else 0
        if refused is not None:
            raise refused
        return admitted

    async def _step_each(
        self, shares: dict[OwnedPartition, int], behind: Collection[OwnedPartition], now_ms: int
    ) -> int:
        """Step partitions; those that are `behind` with their admissions merge their inboxes and admit nothing."""
        due = list(shares)
        inboxes = await self._read_inboxes(shares)
        for mine in due:
            mine.disk.host_share = self.hot_share.urls
        hot_sets = [
            (0, dict(mine.hot), 0) if mine in behind else (mine.room, dict(mine.hot), mine.extra_room) for mine in due
        ]
        self._unconfirmed.update(due)  # before anything is committed: whatever fails from here on, it is told again
        steps = await self._in_thread(lambda: _fold_each(due, inboxes, hot_sets))
        calls: list[scripts.Call[Any]] = []
        for mine, inbox, step in zip(due, inboxes, steps, strict=True):
            if not isinstance(step, BigcrawlError):
                calls += mine.after_step(step, len(inbox), now_ms)
                for turned in step.turned:
                    logger.info("%(turned)s", {"turned": turned_text(turned, self._limits.traps)})
        await self._run_owned(calls)
        self._confirm([mine for mine in due if mine not in behind])
        if self._paces.are_scaled:
            self._paces.note(await self._in_thread(lambda: self._budgets_of(due, steps)))
        self._raise_or_set_apart(list(zip(due, steps, strict=True)))
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
        durable_ms, sound = self._config.frontier.durable_ms, [m for m in self.owned.values() if not m.is_damaged]
        due = [mine for mine in sound if mine.wants_durable(now_ms, durable_ms)]
        if len(due) <= DURABLE_AT_ONCE:
            self._durable_look_ms = now_ms + DURABLE_LOOK_MS
        due = _first_served(due, "durable_ms", DURABLE_AT_ONCE)
        if due:
            await self._make_durable(due)
        owing = [mine for mine in self.owned.values() if mine.owes_publish and mine not in due]
        if due or owing:
            await self._run_owned([mine.publish() for mine in (*due, *owing)])

    async def _make_durable(self, partitions: list[OwnedPartition]) -> None:
        now_ms, sound = self._clock.monotonic_ms(), [mine for mine in partitions if not mine.is_damaged]
        errors = await self._in_thread(lambda: _make_each_durable(sound, now_ms))
        self._raise_or_set_apart(list(zip(sound, errors, strict=True)))

    def _raise_or_set_apart(self, results: list[tuple[OwnedPartition, object]]) -> None:
        """Set partitions apart that turned out to be damaged; raise the first other error, if there is one."""
        errors = [(mine, error) for mine, error in results if isinstance(error, BigcrawlError)]
        for mine, error in errors:
            if is_damage(error):
                self.set_apart(mine, error)
        failed = next((error for _, error in errors if not is_damage(error)), None)
        if failed is not None:
            raise failed

    async def _admit_pending(self) -> RedisRefusedError | None:
        """Offer again what was committed but not admitted because Redis went away in between.

        Returns:
            The error if Redis refuses it: it may be out of memory, and inboxes must be merged all the same.
        """
        owned = self.owned
        unconfirmed = [mine for mine in self._unconfirmed if not mine.is_damaged]
        behind = [mine for mine in unconfirmed if mine.is_behind and owned.get(mine.keys.partition) is mine]
        self._unconfirmed = set(behind)
        if behind:
            try:
                await self._run_owned([call for mine in behind for call in mine.pending_admissions()])
            except RedisRefusedError as error:
                return error
            self._confirm(behind)
        return None

    def _confirm(self, stepped: list[OwnedPartition]) -> None:
        now_ms = self._clock.monotonic_ms()
        for mine in stepped:
            if mine.is_behind:
                mine.admitted = mine.disk.batch_number
                mine.due_ms = min(mine.due_ms, now_ms)
        self._unconfirmed.difference_update(stepped)

    async def _read_inboxes(self, shares: dict[OwnedPartition, int]) -> list[list[InboxEntry]]:
        moved = [mine for mine, share in shares.items() if share]
        replies = await self._client.commands([mine.inbox_command(shares[mine]) for mine in moved])
        read = {mine: mine.parse_inbox(reply) for mine, reply in zip(moved, replies, strict=True)}
        return [read.get(mine, []) for mine in shares]

    async def _run_owned(self, calls: list[scripts.Call[Any]]) -> None:
        """Run calls of owned partitions; a partition that turns out to be lost is dropped."""
        called = [self.owned.get(_partition_of(call)) for call in calls]
        for call, mine in zip(calls, called, strict=True):
            if mine is not None and call.name == "trim_partition":
                mine.owes_publish = True  # until Redis says that it has heard
        failed: BigcrawlError | None = None
        for call, mine, result in zip(calls, called, await self._client.run_each(calls), strict=True):
            if mine is not None and call.name == "trim_partition":
                mine.owes_publish = isinstance(result, BigcrawlError)
            if isinstance(result, OwnershipLostError):
                if mine is not None:
                    self.lose(mine)
            elif isinstance(result, BigcrawlError):
                failed = failed or result
        if failed is not None:
            raise failed

    def _directory(self, partition: int) -> Path:
        return self._config.crawl.crawl_dir / f"p{partition:04d}"

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker, partial(self.file_work.run, work))


def _fold_each(
    due: list[OwnedPartition], inboxes: list[list[InboxEntry]], hot_sets: list[tuple[int, dict[str, int], int]]
) -> list[Step | BigcrawlError]:
    """Fold partition after partition; one that fails does not keep the others from being committed."""
    steps: list[Step | BigcrawlError] = []
    for mine, inbox, hot_set in zip(due, inboxes, hot_sets, strict=True):
        try:
            steps.append(mine.fold(inbox, *hot_set))
        except (TransientStoreError, CorruptionError) as error:
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


def _make_each_durable(partitions: list[OwnedPartition], now_ms: int) -> list[BigcrawlError | None]:
    """Force partition after partition to the disk; one that is damaged does not keep the others from it."""
    errors: list[BigcrawlError | None] = []
    for mine in partitions:
        try:
            mine.make_durable(now_ms)
            errors.append(None)
        except (TransientStoreError, CorruptionError) as error:
            errors.append(error)
    return errors


def _partition_of(call: scripts.Call[Any]) -> int:
    """The partition that a call's first key names."""
    return int(call.keys[0].partition("}")[0].rpartition(":p")[2])
