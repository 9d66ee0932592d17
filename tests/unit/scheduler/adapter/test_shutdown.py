"""A stop is noticed whatever else hangs, and takes no longer than it may."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from scrapy import Spider

from bigcrawl.scheduler.adapter import shutdown
from tests.unit.scheduler.test_scheduler import new_scheduler

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_stop_is_noticed_while_the_pump_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow fetches are given up after the grace although no loop of the node turns: Redis hangs."""
    monkeypatch.setattr(shutdown, "LOOK_OUT_S", 0.001)

    async def scenario() -> None:
        frontier = new_scheduler(tmp_path, stop_grace=0)
        returned: list[str] = []
        aborted = asyncio.Event()
        handout = SimpleNamespace(return_unstarted=lambda: returned.append("unstarted"))
        departure = SimpleNamespace(stop=lambda: returned.append("stopped"))
        node = SimpleNamespace(departure=departure, handout=handout)
        frontier.attach(cast("Any", node), Spider(name="test"))
        downloader = SimpleNamespace(abort=aborted.set)
        slot = SimpleNamespace(closing=None, inprogress=set())
        engine = SimpleNamespace(_slot=slot, downloader=downloader, running=True)
        monkeypatch.setattr(frontier._crawler, "_engine", engine)
        frontier._shutdown.look_out()
        assert not returned
        slot.closing = object()
        await asyncio.wait_for(aborted.wait(), 60)
        assert returned == ["stopped", "unstarted"]
        frontier._shutdown.end()

    asyncio.run(scenario())


def test_time_to_close_is_what_the_stop_has_left(tmp_path: Path) -> None:
    """A crawl that ends by itself closes in its own time; a stopped one within ten seconds of the signal."""

    async def scenario() -> None:
        frontier = new_scheduler(tmp_path, stop_grace=4)
        assert frontier._shutdown.left_ms() == 9_000
        loop = asyncio.get_running_loop()
        now = loop.time()
        for abort_in_s, left_ms in ((4, 9_000), (-2, 3_000)):
            frontier._shutdown._abort_at = now + abort_in_s
            left = frontier._shutdown.left_ms()
            passed_ms = 1000 * (loop.time() - now)
            assert left_ms - passed_ms - 1 <= left <= left_ms
        frontier._shutdown._abort_at = now - 60
        assert frontier._shutdown.left_ms() == 500

    asyncio.run(scenario())
