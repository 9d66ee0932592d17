from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition


class PartitionNews:
    """For each reader, the owned partitions with events that it has not handled.

    Attributes:
        to_step: read by the fold.
        to_keep: read by durable rounds.
        to_look: read by the beat.
        to_tend: read by the watch.
    """

    def __init__(self) -> None:
        self.to_step: set[OwnedPartition] = set()
        self.to_keep: set[OwnedPartition] = set()
        self.to_look: set[OwnedPartition] = set()
        self.to_tend: set[OwnedPartition] = set()
        self.noted = 0
        self.event = asyncio.Event()

    def announce(self, owned: OwnedPartition) -> None:
        self.noted += 1
        self.to_look.add(owned)
        if owned not in self.to_step:
            self.to_step.add(owned)
            self.event.set()

    def record_files(self, owned: OwnedPartition) -> None:
        self.to_keep.add(owned)
        self.announce(owned)

    def forget_partition(self, owned: OwnedPartition) -> None:
        for readers in (self.to_step, self.to_keep, self.to_look, self.to_tend):
            readers.discard(owned)
