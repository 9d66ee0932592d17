"""Makes a spider wait until the outbox has room for its links, or Redis has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.node.node import Node

ROOM_POLL_S = 0.1


class SpiderFlow:
    def __init__(self, shutdown: Shutdown) -> None:
        self._shutdown = shutdown
        self._node: Node | None = None

    def attach(self, node: Node) -> None:
        self._node = node

    @property
    def is_ending(self) -> bool:
        return self._shutdown.has_begun

    def offered(self) -> int:
        return self._node.outbox.offered if self._node is not None else 0

    def are_sent(self, offered: int) -> bool:
        """Return whether the first `offered` URLs are in Redis. If not, wake the pump to send them."""
        node = self._node
        if node is None or node.outbox.flushed >= offered:
            return node is not None
        node.pump.wake()
        return False

    async def wait_for_room(self) -> None:
        node = self._node
        while node is not None and node.workload.is_crowded and not self._shutdown.has_begun:
            node.pump.wake()
            await asyncio.sleep(ROOM_POLL_S)
