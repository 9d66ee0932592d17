"""Claims: Redis gives a partition to one node for the time of a lease, which the node renews (step 4).

A partition is claimed when nobody holds it, when its lease has run out, or when its last owner is known to be dead.
Redis gives a claim once more to whoever can say what a dead owner had in process: that costs a second call.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import Claim, Identity, Refusal
from bigcrawl.scheduler.crawl.in_process import UNKNOWN
from bigcrawl.scheduler.crawl.membership import LastOwner
from bigcrawl.scheduler.owner.damaged import is_damage
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.owner.damaged import DamagedPartitions
    from bigcrawl.scheduler.owner.file_work import FileThread
    from bigcrawl.scheduler.owner.opening import Opener
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable

logger = logging.getLogger(__name__)

CLAIMED_AT_ONCE = 32  # partitions: what is claimed should be open, and its lease renewed, before long


class Claims:
    """Of one node.

    Args:
        config: of the node.
        client: of the crawl's Redis.
        membership: of the node.
        table: the partitions that are owned.
        damaged: those that must not be opened.
        opener: opens what was won.
        thread: for files.
        next_generation: the number of the generation that a claim begins.

    Attributes:
        has_claimed: Redis may name this node.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        membership: Membership,
        table: OwnedTable,
        damaged: DamagedPartitions,
        opener: Opener,
        thread: FileThread,
        next_generation: Callable[[], int],
    ) -> None:
        self._config = config
        self._client = client
        self._membership = membership
        self._table = table
        self._damaged = damaged
        self._opener = opener
        self._thread = thread
        self._next_generation = next_generation
        self._stale: set[OwnedPartition] = set()  # Redis was restarted, and they are not claimed again yet
        self._opening: dict[int, Identity] = {}  # claimed, and not opened yet
        self.has_claimed = False

    def __repr__(self) -> str:
        return f"<Claims of {self._table!r} opening={sorted(self._opening)} stale={len(self._stale)}>"

    @property
    def is_reclaiming(self) -> bool:
        """Whether Redis was restarted, and some of what is owned is not claimed again yet."""
        return bool(self._stale)

    def leases(self) -> tuple[list[OwnedPartition], list[scripts.Call[scripts.PartitionView]]]:
        """The owned partitions, and the calls that look at them and renew their leases.

        More calls follow, for partitions that are claimed and not open yet: opening many takes long.
        """
        held = [owned for owned in self._table.by_number.values() if owned not in self._stale]
        opening = [(partition_keys(self._config.crawl.name, p), identity) for p, identity in self._opening.items()]
        named = [(owned.keys, owned.identity) for owned in held] + opening
        return held, [scripts.look_partition(*names, self._config.frontier.lease_ms) for names in named]

    async def reclaim_all(self) -> None:
        """After Redis was restarted: claim every owned partition again; raises as `claim`."""
        owned = self._table.by_number
        self._stale = set(owned.values())
        await self.claim(sorted(owned))
        self._stale = set()

    async def claim(self, partitions: Sequence[int]) -> None:
        """Claim partitions, and open those that were won.

        Raises:
            TransientStoreError: Redis is away, or the disk is full; what was opened is owned.
            ConfigError: files are not there.
        """
        for start in range(0, len(partitions), CLAIMED_AT_ONCE):
            await self._open(await self._won(list(partitions[start : start + CLAIMED_AT_ONCE])))

    async def _won(self, partitions: list[int]) -> dict[int, Claim]:
        """Claim them; those that were won."""
        self.has_claimed = True
        epochs = await self._opener.last_epochs(partitions)
        results = await self._client.run([self._call(p, epochs[p]) for p in partitions])
        won = {p: result for p, result in zip(partitions, results, strict=True) if isinstance(result, Claim)}
        refused = {p: r for p, r in zip(partitions, results, strict=True) if isinstance(r, Refusal)}
        tokens, membership = {refusal.token for refusal in refused.values()}, self._membership
        owners = await self._thread.run(lambda: {token: LastOwner.of(token, membership) for token in tokens})
        free = {p: owners[r.token] for p, r in refused.items() if owners[r.token].is_dead or r.left_ms <= 0}
        again = await self._client.run([self._call(p, epochs[p], last) for p, last in free.items()])
        return won | {p: result for p, result in zip(free, again, strict=True) if isinstance(result, Claim)}

    async def _open(self, won: dict[int, Claim]) -> None:
        """Open won partitions one by one; what another node took over meanwhile is left to it."""
        table, node = self._table, self._membership.node
        self._opening = {p: Identity(node, claim.epoch, claim.generation) for p, claim in won.items()}
        try:
            for partition, claim in won.items():
                before, identity = table.by_number.get(partition), self._opening[partition]
                try:
                    table.put(await self._opener.open(partition, claim, identity, before))
                except OwnershipLostError as error:
                    logger.info("%(error)s: it is left to its new owner", {"error": error})
                    if before is not None:
                        table.lose(before)
                except BigcrawlError as error:
                    if not is_damage(error):
                        raise
                    await self._leave_damaged(partition, identity, before, error)
                del self._opening[partition]
        finally:
            self._opening = {}

    async def _leave_damaged(
        self, partition: int, identity: Identity, before: OwnedPartition | None, error: BigcrawlError
    ) -> None:
        """A partition that was won cannot be opened: mark it, so that nobody else tries, and let it go."""
        self._damaged.note(partition, error)
        if before is not None:
            self._table.lose(before)
        keys = partition_keys(self._config.crawl.name, partition)
        mark = scripts.trim_partition(keys, identity, NO_INBOX_ID, 0, {"damaged": 1})
        await self._client.run_each([mark, scripts.release_partition(keys, identity)])

    def _call(self, partition: int, epoch_min: int, last: LastOwner | None = None) -> scripts.Call[Claim | Refusal]:
        return scripts.claim_partition(
            partition_keys(self._config.crawl.name, partition),
            node=self._membership.node,
            token=self._membership.token,
            lease_ms=self._config.frontier.lease_ms,
            epoch_min=epoch_min,
            dead_token=last.token if last is not None and last.is_dead else "",
            deadline_ms=self._config.politeness.fetch_deadline_ms,
            delay_ms=self._config.politeness.host_delay_ms,
            generation=self._next_generation(),
            told_of=last.token if last is not None else "",
            in_process=last.in_process_of(partition) if last is not None else UNKNOWN,
        )
