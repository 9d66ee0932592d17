from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.scheduler.owner.damaged import DamagedPartitions, is_damage
from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from bigcrawl.scheduler.owner.publishing import is_publish

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bigcrawl.redisdb import scripts
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.records.held_urls import HeldUrls

logger = logging.getLogger(__name__)


class PendingWork:
    """The owned partitions with events that a loop has not handled yet, for each loop.

    Attributes:
        to_step: read by the fold.
        to_keep: read by durable rounds.
        to_look: read by the beat.
        to_park: read by the watch.
    """

    def __init__(self) -> None:
        self.to_step: set[OwnedPartition] = set()
        self.to_keep: set[OwnedPartition] = set()
        self.to_look: set[OwnedPartition] = set()
        self.to_park: set[OwnedPartition] = set()
        self.events = 0
        self.event = asyncio.Event()

    def announce(self, owned: OwnedPartition) -> None:
        self.events += 1
        self.to_look.add(owned)
        if owned not in self.to_step:
            self.to_step.add(owned)
            self.event.set()

    def record_files(self, owned: OwnedPartition) -> None:
        self.to_keep.add(owned)
        self.announce(owned)

    def forget_partition(self, owned: OwnedPartition) -> None:
        for readers in (self.to_step, self.to_keep, self.to_look, self.to_park):
            readers.discard(owned)


class OwnedTable:
    """The partitions of one node; only this class changes `by_number`."""

    def __init__(self, client: RedisClient, held: HeldUrls, damaged: DamagedPartitions) -> None:
        self._client = client
        self._held = held
        self.damaged = damaged
        self.by_number: dict[int, OwnedPartition] = {}
        self.claims = 0
        self.damages = 0
        self.pending = PendingWork()

    @property
    def undamaged(self) -> list[OwnedPartition]:
        return [owned for owned in self.by_number.values() if not owned.is_damaged]

    def owned_among(self, partitions: Iterable[int]) -> list[OwnedPartition]:
        return [self.by_number[partition] for partition in partitions if partition in self.by_number]

    def has(self, owned: OwnedPartition) -> bool:
        return self.by_number.get(owned.keys.partition) is owned

    def has_sound(self, owned: OwnedPartition) -> bool:
        return self.has(owned) and not owned.is_damaged

    def put(self, owned: OwnedPartition) -> None:
        before = self.by_number.get(owned.keys.partition)
        if before is not None:
            self._forget_partition(before)
        self.by_number[owned.keys.partition] = owned
        self.claims += 1
        owned.call_on_event(self.pending.announce)
        self.pending.record_files(owned)
        self.pending.to_park.add(owned)

    def remove(self, owned: OwnedPartition) -> None:
        if self.has(owned):
            del self.by_number[owned.keys.partition]
            self._forget_partition(owned)

    def remove_lost(self, owned: OwnedPartition) -> None:
        """Remove a partition that another node owns, and its held URLs, unless it was claimed again."""
        if not self.has(owned):
            return
        partition = owned.keys.partition
        del self.by_number[partition]
        self._forget_partition(owned)
        dropped = self._held.drop_partition(partition)
        if owned.draining and not dropped:
            return
        logger.warning(
            "partition %(partition)d has another owner now; %(dropped)d of its URLs held here are left to that node",
            {"partition": partition, "dropped": len(dropped)},
        )

    def set_apart(self, owned: OwnedPartition, error: BigcrawlError) -> None:
        """Stop work on a damaged partition; it is released when it has drained."""
        if not owned.is_damaged:
            owned.record_damage()
            self.damages += 1
            self.damaged.set_apart(owned.keys.partition, error)

    def set_damaged_apart(self, partitions: Sequence[OwnedPartition], results: Sequence[object]) -> None:
        """Set damaged partitions apart, and lose those that another node has claimed. Raise the first other error."""
        errors = [(p, error) for p, error in zip(partitions, results, strict=True) if isinstance(error, BigcrawlError)]
        for owned, error in errors:
            if isinstance(error, OwnershipLostError):
                self.remove_lost(owned)
            elif is_damage(error):
                self.set_apart(owned, error)
        failed = next((e for _, e in errors if not (is_damage(e) or isinstance(e, OwnershipLostError))), None)
        if failed is not None:
            raise failed

    def record_owed(self, owned: OwnedPartition) -> None:
        owned.publishing.record_owed()
        if self.has(owned):
            self.pending.to_keep.add(owned)

    def record_files(self, owned: OwnedPartition) -> None:
        if self.has(owned):
            self.pending.record_files(owned)

    def _forget_partition(self, owned: OwnedPartition) -> None:
        owned.ignore_events()
        owned.record_due(NEVER_MS)
        self.pending.forget_partition(owned)

    async def run(self, asked: Sequence[tuple[OwnedPartition, scripts.Call[Any]]]) -> None:
        """Run calls of owned partitions, and remove lost partitions. The first failure is raised at the end."""
        for owned, call in asked:
            if is_publish(call):
                self.record_owed(owned)
        replies = sort_replies(asked, await self._client.run_each([call for _, call in asked]))
        for (owned, call), _ in replies.done:
            if is_publish(call):
                owned.publishing.record_confirmed()
        for owned, _ in replies.lost:
            self.remove_lost(owned)
        replies.raise_failure()
