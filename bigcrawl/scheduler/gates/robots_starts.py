"""When a robots.txt may be fetched (step 10): it passes the same gates as a page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.passage import MISSED, UNASKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.gates.address_check import AddressCheck
    from bigcrawl.scheduler.gates.passages import Passages
    from bigcrawl.scheduler.records.passage import Space


class RobotsStarts:
    """Waits for the starts of fetches that are not handed out to the engine."""

    def __init__(
        self,
        addresses: AddressCheck,
        passages: Passages,
        clock: Clock,
        try_start: Callable[[tuple[Space, ...], int], int],
    ) -> None:
        """`try_start` keeps the gaps to the node's other starts: `StartGaps.try_start_until`."""
        self._addresses = addresses
        self._passages = passages
        self._clock = clock
        self._try_start = try_start

    def __repr__(self) -> str:
        return f"<RobotsStarts {self._passages!r}>"

    async def wait(self, host: str, due_ms: int, url: str) -> None:
        """Wait until a URL of the host may be fetched, not before `due_ms` on the monotonic clock.

        Raises:
            Closed: the address is refused or unknown, or a gate opens later.
            TransientStoreError: Redis is away.
        """
        address = await self._addresses.find(host)
        lines = self._passages.lines(address, host, url)
        passage, wait_ms = UNASKED, MISSED
        while wait_ms:
            if wait_ms == MISSED:
                passage = await self._passages.passage(lines, due_ms, url, passage)
                wait_ms = max(0, passage.at_ms - self._clock.monotonic_ms())
            await asyncio.sleep(wait_ms / 1000)
            # Another start of this node may have been late.
            wait_ms = self._try_start(lines.gaps, passage.until_ms)
