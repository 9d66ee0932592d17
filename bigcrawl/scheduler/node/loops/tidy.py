"""The tidy loop: returns free memory to the system."""

from __future__ import annotations

import asyncio

from bigcrawl.scheduler.node.loops.loop import Loop
from bigcrawl.scheduler.node.memory import give_memory_back

TIDY_S = 60.0


class Tidy(Loop):
    """Returns free memory to the system once a minute."""

    name = "tidy"

    async def turn(self) -> float:
        """One round."""
        await asyncio.to_thread(give_memory_back)
        return TIDY_S
