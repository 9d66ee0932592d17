"""Claims: Redis gives a partition to one node for the time of a lease, which the node renews (step 4).

A node can claim a partition that nobody owns. If there was an owner before, the lease must have run out, or the owner
must be known to be dead. Redis then refuses the first call, and grants a second one that says what the last owner had
in process, as far as known.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import Claim, Identity, Refusal
from bigcrawl.scheduler.crawl.in_process import UNKNOWN
from bigcrawl.scheduler.crawl.membership import LastOwner
from bigcrawl.scheduler.crawl.missing import MARK, LostFilesError
from bigcrawl.scheduler.handout.lanes import WAIT_MS_MAX
from bigcrawl.scheduler.owner.damaged import is_damage
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.crawl.missing import MissingPartitions
    from bigcrawl.scheduler.owner.claiming.opening import Opener
    from bigcrawl.scheduler.owner.damaged import DamagedPartitions
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread

logger = logging.getLogger(__name__)

ABORT_MS = 5_000  # a node that runs needs less to give up its fetches when its lease is over (node.loops.guard)
CLAIMED_AT_ONCE = 32  # partitions; they must be open, and their leases renewed, before long


class Claims:
    """Claims partitions for one node, and names its leases.

    Args:
        config: of the node.
        client: of the crawl's Redis.
        membership: of the node.
        table: the partitions that are owned.
        damaged: partitions that must not be opened.
        missing: partitions whose files are nowhere left.
        opener: opens partitions that were won.
        thread: does the file work.
        next_generation: returns the number of the generation that a claim begins.

    Attributes:
        has_claimed: whether Redis may name this node as an owner.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        membership: Membership,
        table: OwnedTable,
        damaged: DamagedPartitions,
        missing: MissingPartitions,
        opener: Opener,
        thread: FileThread,
        next_generation: Callable[[], int],
    ) -> None:
        self._config = config
        self._client = client
        self._membership = membership
        self._table = table
        self._damaged = damaged
        self._missing = missing
        self._opener = opener
        self._thread = thread
        self._next_generation = next_generation
        self._stale: set[OwnedPartition] = set()  # not claimed again yet since Redis was restarted
        self._opening: dict[int, Identity] = {}  # claimed, but not opened yet
        self._rests: dict[int, int] = {}  # until when hosts rest, by the last claim; Redis may forget it
        self.has_claimed = False

    def __repr__(self) -> str:
        return f"<Claims of {self._table!r} opening={sorted(self._opening)} stale={len(self._stale)}>"

    @property
    def is_reclaiming(self) -> bool:
        """Whether Redis was restarted, and some partitions are not claimed again yet."""
        return bool(self._stale)

    def current(self, owned: Iterable[OwnedPartition]) -> set[OwnedPartition]:
        """Those that are owned, but for those that are to be claimed again."""
        return {each for each in owned if each not in self._stale and self._table.has(each)}

    @property
    def opening(self) -> Mapping[int, Identity]:
        """The partitions that are claimed but not open yet. Opening many takes long, and their leases are renewed."""
        return self._opening

    async def reclaim_all(self) -> None:
        """Claim every owned partition again after a restart of Redis. Raises what `claim` raises."""
        owned = self._table.by_number
        self._stale = set(owned.values())
        await self.claim(sorted(owned))
        self._stale = set()

    async def claim(self, partitions: Sequence[int]) -> None:
        """Claim partitions and open those that were won.

        Raises:
            TransientStoreError: Redis is away, or the disk is full. Partitions that were opened are owned.
            ConfigError: the files of a partition are missing, and the settings say that this node ends.
        """
        for start in range(0, len(partitions), CLAIMED_AT_ONCE):
            await self._open(await self._won(list(partitions[start : start + CLAIMED_AT_ONCE])))

    async def _won(self, partitions: list[int]) -> dict[int, Claim]:
        """Claim partitions; return those that were won."""
        await self._thread.run(self._membership.require_place)  # or directories are made where nothing is mounted
        self.has_claimed = True
        epochs = await self._opener.last_epochs(partitions)
        is_alone_here = await self._thread.run(self._membership.is_alone_here)
        results = await self._client.run([self._call(p, epochs[p], None, is_alone_here) for p in partitions])
        won = {p: result for p, result in zip(partitions, results, strict=True) if isinstance(result, Claim)}
        refused = {p: r for p, r in zip(partitions, results, strict=True) if isinstance(r, Refusal)}
        tokens, membership = {refusal.token for refusal in refused.values()}, self._membership
        owners = await self._thread.run(lambda: {token: LastOwner.of(token, membership) for token in tokens})
        free = {p: owners[r.token] for p, r in refused.items() if owners[r.token].is_dead or r.left_ms <= 0}
        again = await self._client.run([self._call(p, epochs[p], last, is_alone_here) for p, last in free.items()])
        won |= {p: result for p, result in zip(free, again, strict=True) if isinstance(result, Claim)}
        self._rests |= {p: result.rest_ms for p, result in won.items()}
        return won

    async def _open(self, won: dict[int, Claim]) -> None:
        """Open won partitions. One that another node has taken over meanwhile is left to it.

        They are opened at once: while one waits for Redis or the store, the disk opens another.
        """
        node = self._membership.node
        self._opening = {p: Identity(node, claim.epoch, claim.generation) for p, claim in won.items()}
        try:
            trimmed = await self._opener.trimmed(list(won))
            opening = (self._open_one(p, claim, trimmed[p]) for p, claim in won.items())
            results = await asyncio.gather(*opening, return_exceptions=True)
        finally:
            self._opening = {}
        if failed := next((error for error in results if error is not None), None):
            raise failed

    async def _open_one(self, partition: int, claim: Claim, trimmed: str) -> None:
        table = self._table
        before, identity = table.by_number.get(partition), self._opening[partition]
        try:
            table.put(await self._opener.open(partition, claim, identity, before, trimmed))
        except OwnershipLostError as error:
            logger.info("%(error)s: it is left to its new owner", {"error": error})
            if before is not None:
                table.lose(before)
        except LostFilesError as error:
            self._missing.note(partition, error)
            await self._set_apart(partition, identity, before, MARK)
        except BigcrawlError as error:
            if not is_damage(error):
                raise
            self._damaged.note(partition, error)
            await self._set_apart(partition, identity, before, "damaged")
        del self._opening[partition]

    async def _set_apart(self, partition: int, identity: Identity, before: OwnedPartition | None, mark: str) -> None:
        """Mark and release a won partition that cannot be opened, so that nobody else tries."""
        if before is not None:
            self._table.lose(before)
        keys = partition_keys(self._config.crawl.name, partition)
        marking = scripts.trim_partition(keys, identity, NO_INBOX_ID, 0, {mark: 1})
        await self._client.run_each([marking, scripts.release_partition(keys, identity)])

    def _call(
        self, partition: int, epoch_min: int, last: LastOwner | None, is_alone_here: bool
    ) -> scripts.Call[Claim | Refusal]:
        before, deadline_ms = self._table.by_number.get(partition), self._config.politeness.fetch_deadline_ms
        # Those of the owner before may be under way until hosts need no longer rest for them.
        have_rested = self._rests.get(partition, 0) <= self._client.now_ms()
        has_fetched_all = before is not None and before.identity.epoch == epoch_min and have_rested
        lease_ms = self._config.frontier.lease_ms
        return scripts.claim_partition(
            partition_keys(self._config.crawl.name, partition),
            node=self._membership.node,
            token=self._membership.token,
            lease_ms=lease_ms,
            epoch_min=epoch_min,
            dead_token=last.token if last is not None and last.is_dead else "",
            deadline_ms=deadline_ms + WAIT_MS_MAX,  # since it was taken
            # The kernel goes on receiving for a process that is stopped, and nobody gives its fetches up.
            abort_ms=deadline_ms if last is not None and last.is_here else ABORT_MS,
            forgotten_ms=lease_ms + ABORT_MS if is_alone_here else deadline_ms,
            delay_ms=self._config.politeness.host_delay_ms,
            generation=self._next_generation(),
            told_of=last.token if last is not None else "",
            in_process=last.in_process_of(partition) if last is not None else UNKNOWN,
            server="" if has_fetched_all else self._client.server,
        )
