"""How far a spider may go on: the outbox must have room for its links, and Redis must get them (step 3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.node.node import Node

ROOM_POLL_S = 0.1


class SpiderFlow:
    """Makes a spider wait for the outbox. Before the node has joined its crawl, nothing waits and nothing is sent."""

    def __init__(self, shutdown: Shutdown) -> None:
        """`shutdown` says whether the spider is closing: then it waits no longer."""
        self._shutdown = shutdown
        self._node: Node | None = None

    def __repr__(self) -> str:
        return f"<SpiderFlow offered={self.offered()} is_ending={self.is_ending}>"

    def attach(self, node: Node) -> None:
        """Wait for the outbox of this node, which has joined its crawl."""
        self._node = node

    @property
    def is_ending(self) -> bool:
        """Whether the spider is closing, or is about to because of an error."""
        return self._shutdown.has_begun

    def offered(self) -> int:
        """How many URLs were offered until now; see `are_sent`."""
        return self._node.outbox.offered if self._node is not None else 0

    def are_sent(self, offered: int) -> bool:
        """Whether all that was offered, when so many were, is in Redis. If not, it is sent soon."""
        node = self._node
        if node is None or node.outbox.flushed >= offered:
            return node is not None
        node.pump.wake()
        return False

    async def wait_for_room(self) -> None:
        """Wait while the outbox is full, but not while the spider closes: its links must not be refused."""
        node = self._node
        while node is not None and node.workload.is_crowded and not self._shutdown.has_begun:
            node.pump.wake()
            await asyncio.sleep(ROOM_POLL_S)
