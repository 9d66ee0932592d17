from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.config import FrontierConfig
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.ownership import Ownership


class Workload:
    """The work of a node, and whether it can take more.

    `moves` counts the rounds that left the node with no URL to hold or send; each sets `emptied`.
    """

    def __init__(self, frontier: FrontierConfig, handout: Handout, outbox: Outbox) -> None:
        self._urls_max = frontier.outbox_urls_max
        self._starved_below = max(1, frontier.in_process_max // 2)
        self._held = handout.held
        self._outbox = outbox
        self._unfolded = 0
        self.is_stopping = False
        self.moves = 0
        self.emptied = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Workload held={len(self._held)} waiting={self._outbox.waiting} unfolded={self._unfolded}>"

    def stop(self) -> None:
        self.is_stopping = True

    def record_unfolded(self, urls: int) -> None:
        self._unfolded = urls

    def record_moved(self) -> None:
        if self.is_empty:
            self.moves += 1
            self.emptied.set()

    @property
    def is_crowded(self) -> bool:
        """Whether spiders must wait and no URL is taken, because the outbox or inboxes are full."""
        inboxes_full = self._unfolded >= self._urls_max or self._outbox.unfolded.is_full
        return self._outbox.is_full or inboxes_full

    @property
    def is_starved(self) -> bool:
        return len(self._held) < self._starved_below

    @property
    def is_empty(self) -> bool:
        return not len(self._held) and not self._outbox.waiting

    def is_idle(self, ownership: Ownership) -> bool:
        return self.is_empty and not ownership.has_waiting

    def may_rest(self) -> bool:
        return not (self.is_stopping or self.is_starved)
