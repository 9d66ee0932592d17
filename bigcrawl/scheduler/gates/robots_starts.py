"""When a robots.txt, or the head of a URL, may be fetched (step 10): it passes the same gates as a page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.scheduler.gates.closed import Closed
from bigcrawl.scheduler.gates.fetched import asked_rest_ms
from bigcrawl.scheduler.records.body import look_at_request
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.passage import MISSED, UNASKED
from bigcrawl.scheduler.records.queued_url import ASKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.gates.address_check import AddressCheck
    from bigcrawl.scheduler.gates.fetched import Fetch
    from bigcrawl.scheduler.gates.passages import Passages
    from bigcrawl.scheduler.gates.ways_out import NotesFetches
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.passage import Space
    from bigcrawl.scheduler.rules.head_rules import HeadRules


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

    async def wait(self, host: str, due_ms: int, url: str) -> tuple[Space, ...]:
        """Wait until a URL of the host may be fetched, not before `due_ms` on the monotonic clock. Return its gaps.

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
        return lines.gaps


class HeadFirst:
    """Asks URLs by HEAD before they are fetched, if their kind asks for it (`rules.head_rules`)."""

    def __init__(
        self,
        rules: HeadRules,
        starts: RobotsStarts,
        fetch: Fetch,
        gaps: NotesFetches,
        clock: Clock,
        retry_after_max_ms: int,
    ) -> None:
        """Ask with `fetch`, after `starts`. `gaps` is told of each fetch at its host."""
        self._rules = rules
        self._starts = starts
        self._fetch = fetch
        self._gaps = gaps
        self._clock = clock
        self._retry_after_max_ms = retry_after_max_ms

    def __repr__(self) -> str:
        return f"<HeadFirst {self._rules!r}>"

    def is_due(self, held: HeldUrl) -> bool:
        """Whether a URL is to be asked before it is fetched: once, and only if it is fetched by GET."""
        if not self._rules or held.fields.flags & ASKED or not self._rules.ask(held.url):
            return False
        try:
            request = look_at_request(held.fields.body)
        except ValueError:
            return False  # who decodes it reports the damage
        return request.method == "GET" and not request.body

    async def ask(self, held: HeldUrl) -> str:
        """Ask a URL whose host this node holds. Return the rule that drops it; empty if it is to be fetched.

        Raises:
            Closed: the address is refused or unknown, or a gate opens later.
            TransientStoreError: Redis is away.
        """
        gaps = await self._starts.wait(held.host, held.due_ms, held.url)
        if held.stage is Stage.ENDED:
            raise Closed(retry_ms=0)  # another node has its host by now
        with self._gaps.fetching(held.host):
            fetched = await self._fetch(held.url, "HEAD", gaps, held.fields.body)
        held.note_retry_after(asked_rest_ms(fetched, self._clock.now_ms(), self._retry_after_max_ms))
        return self._rules.against(fetched.status, fetched.content_type, fetched.content_length)
