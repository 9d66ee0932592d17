"""How much a node has to do, and whether it can take more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.config import FrontierConfig
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.ownership import Ownership


class Workload:
    """What a node holds, what it has to send, and what waits in the inboxes of its partitions.

    Attributes:
        is_running: whether the node's loops run, and its engine may be open.
        is_stopping: whether the node takes no more URLs.
        moves: how often URLs were acknowledged, or a partition stepped, with nothing left to hold or send.
        emptied: is set by each of these.
    """

    def __init__(self, frontier: FrontierConfig, handout: Handout, outbox: Outbox) -> None:
        self._urls_max = frontier.outbox_urls_max
        self._starved_below = max(1, frontier.in_process_max // 2)
        self._held = handout.held
        self._outbox = outbox
        self._unfolded = 0  # URLs in the inboxes of owned partitions
        self.is_running = False
        self.is_stopping = False
        self.moves = 0
        self.emptied = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Workload held={len(self._held)} waiting={self._outbox.waiting} unfolded={self._unfolded}>"

    def begin(self) -> None:
        """The loops run."""
        self.is_running = True

    def stop(self) -> None:
        """Take no more URLs."""
        self.is_stopping = True

    def note_unfolded(self, urls: int) -> None:
        """Note how many URLs are in the inboxes of owned partitions."""
        self._unfolded = urls

    def note_moved(self) -> None:
        """URLs were acknowledged, or a partition has made a step."""
        if self.is_empty:
            self.moves += 1
            self.emptied.set()

    @property
    def is_crowded(self) -> bool:
        """Whether spiders must wait and nothing is taken, because the outbox or inboxes are full."""
        inboxes_full = self._unfolded >= self._urls_max or self._outbox.unfolded.is_full
        return self._outbox.is_full or inboxes_full

    @property
    def is_starved(self) -> bool:
        """Whether the node has too little to fetch."""
        return len(self._held) < self._starved_below

    @property
    def is_empty(self) -> bool:
        """Whether the node holds nothing and has nothing to send."""
        return not len(self._held) and not self._outbox.waiting

    def is_idle(self, ownership: Ownership) -> bool:
        """Whether the node is empty and nothing waits in its partitions."""
        return self.is_empty and not ownership.has_waiting

    def may_rest(self) -> bool:
        """Whether merges may take their time. The worker thread asks this."""
        return not (self.is_stopping or self.is_starved)
