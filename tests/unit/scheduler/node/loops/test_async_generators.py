"""The event loop keeps no set of asynchronous generators, and closes those that are dropped all the same."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.memory import untrack_async_generators

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_generators_are_not_tracked_and_still_closed() -> None:
    """One that is dropped half-way comes to its `finally`; the hooks are the loop's own again after its end."""
    closed = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    async def scenario() -> None:
        untrack_async_generators()
        generator = numbers()
        assert await anext(generator) == 1
        assert len(asyncio.get_running_loop()._asyncgens) == 0  # type: ignore[attr-defined]
        del generator
        gc.collect()
        await closed.wait()

    before = sys.get_asyncgen_hooks()
    asyncio.run(scenario())
    assert sys.get_asyncgen_hooks() == before
