"""A robots.txt starts when its server may be asked, as a page does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.records.at_gates import MISSED
from tests.unit.scheduler.gates.parts import FILE, HOST, obeying, rules_of
from tests.unit.scheduler.gates.test_gatekeeper import url_of

if TYPE_CHECKING:
    from pathlib import Path


def test_robots_starts_keep_the_gap_of_their_server_after_late_ones(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Redis granted a time, but the start before it was late: this one waits; so does what a redirect leads to."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, server_delay=0.01) as w:
            w.web.answers[FILE] = FetchedBody(301, location=f"http://{HOST}/rules.txt")
            asked: list[tuple[int, tuple[tuple[str, int], ...]]] = []
            until: list[int] = []
            waits = [30, MISSED, 20, 0, 0]

            def start(gaps: tuple[tuple[str, int], ...], until_ms: int) -> int:
                asked.append((len(w.web.asked), gaps))
                until.append(until_ms)
                if waits[0] == MISSED:
                    w.clock.advance(until_ms - w.clock.monotonic_ms() + 1)
                return waits.pop(0)

            await rules_of(w, try_start=start).fetch_rules(url_of(HOST))
            gaps = (("192.0.2.1", 10),)
            assert asked == [(0, gaps)] * 4 + [(1, gaps)]
            assert until[0] == until[1] < until[2] == until[3], "a missed start is asked for again"
            assert len(w.web.asked) == 2

    asyncio.run(scenario())
