from __future__ import annotations

import asyncio

from bigcrawl.scheduler.node.loops.loop import Loop
from bigcrawl.scheduler.node.loops.memory import give_memory_back

TIDY_S = 60.0


class Tidy(Loop):
    name = "tidy"

    async def turn(self) -> float:
        await asyncio.to_thread(give_memory_back)
        return TIDY_S
