"""Where a spider starts, and where it waits: no start request is lost, and nothing waits for a crawl that ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from scrapy import Spider

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.scheduler.adapter import spider_flow, spider_start
from tests.unit.scheduler.test_scheduler import new_scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.scheduler.scheduler import Scheduler


class Crawl:
    """A node of which only starts, room and the outbox matter; Redis may be away for some calls."""

    def __init__(self, *, answers: Sequence[int | None] = (), away: int = 0) -> None:
        self._answers = list(answers)
        self._away = away
        self.woken = 0
        self.calls: list[str] = []
        self.outbox = SimpleNamespace(offered=5, flushed=3)
        self.workload = SimpleNamespace(is_crowded=True)
        self.starts = SimpleNamespace(claim=self._claim, end=self._end, leave_undone=self._leave, are_under_way=True)
        self.pump = SimpleNamespace(wake=self._wake)
        self.progress = SimpleNamespace(record_start=lambda *, is_done: None)

    def _wake(self) -> None:
        self.woken += 1
        self.outbox.flushed += 1

    async def _claim(self, digest: str) -> int:
        answer = self._answers.pop(0)
        if answer is None:
            raise TransientStoreError("away")
        return answer

    async def _end(self) -> None:
        self._call("end")

    async def _leave(self) -> None:
        self._call("leave")
        self.starts.are_under_way = False

    def _call(self, name: str) -> None:
        self._away -= 1
        if self._away >= 0:
            raise TransientStoreError("away")
        self.calls.append(name)


def attached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crawl: Crawl) -> Scheduler:
    """A scheduler of that crawl, whose spider is open and which does not wait between two tries."""
    monkeypatch.setattr(spider_flow, "ROOM_POLL_S", 0.0)
    for name in ("FLUSH_POLL_S", "START_RETRY_S"):
        monkeypatch.setattr(spider_start, name, 0.0)
    frontier = new_scheduler(tmp_path)
    frontier.attach(cast("Any", crawl), Spider("test"))
    return frontier


@pytest.mark.parametrize(("answers", "is_ours"), [((0, None, 1), True), ((None, 0, 2), False)])
def test_start_is_asked_for_until_somebody_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Sequence[int | None], *, is_ours: bool
) -> None:
    """While another node runs it, and while Redis is away; ours or done in the end."""
    frontier = attached(tmp_path, monkeypatch, Crawl(answers=answers))
    assert asyncio.run(frontier.start.claim()) is is_ours


def test_start_ends_when_its_requests_are_in_the_inboxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before: a crash between the two would lose them. Redis may be away when it is told."""
    crawl = Crawl(away=2)
    asyncio.run(attached(tmp_path, monkeypatch, crawl).start.end())
    assert crawl.calls == ["end"]
    assert crawl.outbox.flushed >= crawl.outbox.offered
    assert crawl.woken >= 2


def test_start_that_failed_is_left_to_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often Redis is away meanwhile."""
    crawl = Crawl(away=2)
    asyncio.run(attached(tmp_path, monkeypatch, crawl).start.give_up())
    assert crawl.calls == ["leave"]


def test_spider_waits_for_room_and_not_for_a_crawl_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has found by then is taken all the same; a crawl that failed sends no more of it."""

    async def scenario() -> None:
        crawl = Crawl()
        frontier = attached(tmp_path, monkeypatch, crawl)
        waiting = asyncio.ensure_future(frontier.flow.wait_for_room())
        while crawl.woken < 3:  # noqa: ASYNC110 - every turn of the loop counts
            await asyncio.sleep(0)
        assert not waiting.done()
        crawl.workload.is_crowded = False
        await asyncio.wait_for(waiting, 60)
        crawl.workload.is_crowded = True
        monkeypatch.setattr(frontier._crawler, "_engine", SimpleNamespace(running=False))
        frontier.fail(ConfigError("a setting"))
        await asyncio.wait_for(frontier.flow.wait_for_room(), 60)

    asyncio.run(scenario())


def test_nothing_is_claimed_or_waited_for_before_the_node_has_joined(tmp_path: Path) -> None:
    """The spider goes on, and its start requests are not run."""

    async def scenario() -> None:
        frontier = new_scheduler(tmp_path)
        assert not await frontier.start.claim()
        assert not frontier.flow.are_sent(frontier.flow.offered())
        for wait in (frontier.flow.wait_for_room, frontier.start.end, frontier.start.give_up):
            await asyncio.wait_for(wait(), 60)

    asyncio.run(scenario())
