"""The partitions that a node owns, and what it does with one that is lost or damaged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.scheduler.owner.damaged import is_damage
from bigcrawl.scheduler.owner.news import News
from bigcrawl.scheduler.owner.publishing import is_publish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb import scripts
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.damaged import DamagedPartitions
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.records.held_urls import HeldUrls

logger = logging.getLogger(__name__)


class OwnedTable:
    """The partitions of one node.

    Attributes:
        by_number: the partitions, by number. Only this class changes it.
        claims: how many partitions were claimed until now.
        news: the partitions to which something has happened.
    """

    def __init__(self, client: RedisClient, held: HeldUrls, damaged: DamagedPartitions) -> None:
        self._client = client
        self._held = held
        self._damaged = damaged
        self.by_number: dict[int, OwnedPartition] = {}
        self.claims = 0
        self.news = News()

    def __repr__(self) -> str:
        return f"<OwnedTable of {len(self.by_number)}>"

    @property
    def sound(self) -> list[OwnedPartition]:
        """The partitions without damage."""
        return [owned for owned in self.by_number.values() if not owned.is_damaged]

    def has(self, owned: OwnedPartition) -> bool:
        """Whether the partition is still owned, in the same epoch."""
        return self.by_number.get(owned.keys.partition) is owned

    def has_sound(self, owned: OwnedPartition) -> bool:
        """Whether the partition is still owned, in the same epoch, and without damage."""
        return self.has(owned) and not owned.is_damaged

    def put(self, owned: OwnedPartition) -> None:
        """Add a partition, or replace the same one of an earlier epoch."""
        before = self.by_number.get(owned.keys.partition)
        if before is not None:
            self.news.forget(before)
        self.by_number[owned.keys.partition] = owned
        self.claims += 1
        owned.tell_news_to(self.news.note)
        self.news.note(owned)

    def remove(self, owned: OwnedPartition) -> None:
        """Remove a partition that was released, unless it was claimed again."""
        if self.has(owned):
            del self.by_number[owned.keys.partition]
            self.news.forget(owned)

    def lose(self, owned: OwnedPartition) -> None:
        """Remove a partition that another node owns, with all that is held of it, unless it was claimed again."""
        if not self.has(owned):
            return
        partition = owned.keys.partition
        del self.by_number[partition]
        self.news.forget(owned)
        dropped = self._held.drop_partition(partition)
        if owned.draining and not dropped:
            return  # it was just released, and this was seen before the reply came
        logger.warning(
            "partition %(partition)d has another owner now; %(dropped)d URLs held of it are left to that node",
            {"partition": partition, "dropped": len(dropped)},
        )

    def set_apart(self, owned: OwnedPartition, error: BigcrawlError) -> None:
        """Stop working on a partition whose files are damaged, and release it when it has drained."""
        if not owned.is_damaged:
            owned.note_damage()
            self._damaged.note(owned.keys.partition, error)

    def set_damaged_apart(self, partitions: Sequence[OwnedPartition], results: Sequence[object]) -> None:
        """Set apart the partitions whose result is damage, and lose those that another node has begun.

        Raise the first other error, if there is one.
        """
        errors = [(p, error) for p, error in zip(partitions, results, strict=True) if isinstance(error, BigcrawlError)]
        for owned, error in errors:
            if isinstance(error, OwnershipLostError):
                self.lose(owned)
            elif is_damage(error):
                self.set_apart(owned, error)
        failed = next((e for _, e in errors if not (is_damage(e) or isinstance(e, OwnershipLostError))), None)
        if failed is not None:
            raise failed

    def note_owed(self, owned: OwnedPartition) -> None:
        """Redis may not know the latest counts of the partition."""
        owned.publishing.note_owed()
        self.news.to_keep.add(owned)

    async def run(self, asked: Sequence[tuple[OwnedPartition, scripts.Call[Any]]]) -> None:
        """Run calls of owned partitions, and remove the partitions that turn out to be lost.

        Raises:
            TransientStoreError: Redis is unreachable or refused a call. The other calls were carried out.
        """
        for owned, call in asked:
            if is_publish(call):
                self.note_owed(owned)  # until Redis has confirmed it
        replies = sort_replies(asked, await self._client.run_each([call for _, call in asked]))
        for (owned, call), _ in replies.done:
            if is_publish(call):
                owned.publishing.note_confirmed()
        for owned, _ in replies.lost:
            self.lose(owned)
        replies.raise_failure()
