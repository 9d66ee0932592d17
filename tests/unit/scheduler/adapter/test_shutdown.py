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
        fetches = SimpleNamespace(under_way=1)
        handout = SimpleNamespace(return_unstarted=lambda: returned.append("unstarted"), fetches=fetches)
        departure = SimpleNamespace(stop=lambda: returned.append("stopped"))
        node = SimpleNamespace(departure=departure, handout=handout)
        frontier.attach(cast("Any", node), Spider(name="test"))
        downloader = SimpleNamespace(abort_all=aborted.set)
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
        shutdown_, loop = frontier._shutdown, asyncio.get_running_loop()
        shutdown_._crawler.crawling = shutdown_._crawler._started = True
        shutdown_._abort_at = loop.time() - 60  # the spider has been closing for a minute
        assert shutdown_.left_ms() == 8_000
        assert shutdown_.has_time()
        shutdown_._crawler.crawling = False  # a signal comes
        assert shutdown_.left_ms() == 8_000
        for waited_s, left_ms, has_time in ((6, 2_000, True), (7, 1_000, False), (60, 500, False)):
            now = loop.time()
            shutdown_._hurried_at = now - waited_s
            left = shutdown_.left_ms()
            passed_ms = 1000 * (loop.time() - now)
            assert left_ms - passed_ms - 1 <= left <= left_ms
            assert shutdown_.has_time() is has_time

    asyncio.run(scenario())
