"""Turns of the event loop, for tests that wait for no clock."""

from __future__ import annotations

import asyncio


async def loop_turns(count: int = 20) -> None:
    """Let the loop turn a few times: whoever can go on without I/O has done so."""
    for _ in range(count):
        await asyncio.sleep(0)
