"""How far a node takes the crawl to be: no page is counted twice, and no end is believed that was told too soon."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.scheduler.crawl.survey import Survey
from bigcrawl.scheduler.node.progress import READS_AN_EVENT, STALE_MS, CrawlProgress
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path


class Finish:
    """What was said of the end to other nodes."""

    def __init__(self) -> None:
        self.taken_back = 0

    async def is_announced(self, seen: Survey) -> bool:
        return True

    async def revoke_end(self) -> None:
        self.taken_back += 1


def progress_of(tmp_path: Path, pages_max: int = 0, **settings: Any) -> tuple[Any, Any, Finish]:
    """The progress of a crawl, and where its node's own pages and the word of its end come from."""
    exchange, finish, nobody = SimpleNamespace(pages=0), Finish(), SimpleNamespace()
    config = make_config(tmp_path, "crawl", max_pages=pages_max, **settings)
    crawl = SimpleNamespace(config=config, client=nobody, clock=ManualClock(), membership=nobody)
    budgets = SimpleNamespace(current_mark=0, callbacks=ANY_CALLBACKS)
    ownership = SimpleNamespace(crawl_budgets=budgets, table=SimpleNamespace(pending=nobody))
    made: Any = CrawlProgress
    progress = made(crawl, ownership, SimpleNamespace(held=nobody), nobody, exchange)
    progress.finish = finish
    return progress, exchange, finish


def survey_of(pages: int, urls_disk: int = 0) -> Survey:
    seen = Survey(4, urls_disk=urls_disk)
    seen.counts["status:200"] = pages
    return seen


def test_own_pages_are_counted_once(tmp_path: Path) -> None:
    """What was acknowledged before a survey began is in it; what comes during it may be, and is added for now."""

    async def scenario() -> None:
        progress, exchange, _ = progress_of(tmp_path, pages_max=100)
        exchange.pages = 10

        async def survey() -> Survey:
            exchange.pages = 12
            return survey_of(50)

        progress.survey = survey
        await progress.count_pages()
        assert (progress.pages_before, progress.pages) == (50, 52)

    asyncio.run(scenario())


@pytest.mark.parametrize(("nodes", "left"), [(1, 9), (2, 4), (3, 3)])
def test_what_is_left_is_shared_and_own_pages_since_come_off(tmp_path: Path, nodes: int, left: int) -> None:
    """Rounded up: no page that may be fetched is nobody's."""

    async def scenario() -> None:
        progress, exchange, _ = progress_of(tmp_path, pages_max=20)
        await progress.begin(survey_of(10))
        exchange.pages = 1
        assert progress.pages_left(nodes) == left
        assert not progress.has_reached_max

    asyncio.run(scenario())


def test_limit_is_reached_by_a_survey_and_not_by_own_pages(tmp_path: Path) -> None:
    """Own pages may be in the survey already."""

    async def scenario() -> None:
        progress, exchange, _ = progress_of(tmp_path, pages_max=20)
        await progress.begin(survey_of(19))
        exchange.pages = 5
        assert not progress.has_reached_max
        await progress.begin(survey_of(20))
        assert progress.has_reached_max

    asyncio.run(scenario())


def test_end_that_was_told_too_soon_is_taken_back_once(tmp_path: Path) -> None:
    """A link that came up during the last look, or a spider that was given more to do later, makes it so."""

    async def scenario() -> None:
        progress, _, finish = progress_of(tmp_path)
        progress.record_end(is_certain=False)
        assert not progress.is_finished
        for _ in range(2):
            await progress.revoke_end()
        assert finish.taken_back == 1
        progress.record_end(is_certain=True)
        await progress.revoke_end()
        assert (progress.is_finished, finish.taken_back) == (True, 1)
        progress.go_on()
        await progress.revoke_end()
        assert (progress.is_finished, finish.taken_back) == (False, 2)

    asyncio.run(scenario())


def test_crawl_that_was_finished_before_stays_so_unless_there_are_starts_to_run(tmp_path: Path) -> None:
    """The word of its end is believed only where nothing is left."""

    async def scenario() -> None:
        progress, _, _ = progress_of(tmp_path)
        await progress.begin(survey_of(3, urls_disk=1))
        assert not progress.is_finished
        await progress.begin(survey_of(3))
        assert progress.is_finished
        progress.record_start(is_done=True)
        assert progress.is_finished
        progress.record_start(is_done=False)
        assert not progress.is_finished

    asyncio.run(scenario())


def test_survey_is_taken_again_once_as_much_has_happened_as_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here or, by their reports, on other nodes; and when it is old."""

    async def scenario() -> list[int]:
        progress, exchange, _ = progress_of(tmp_path, partitions=4 * READS_AN_EVENT)
        activity, surveys = progress.activity, []
        activity._pending, activity._held = SimpleNamespace(events=0), ()
        activity._outbox = SimpleNamespace(offered=0)
        activity._membership = SimpleNamespace(node="a", reports={"a": {}, "b": {"pages": 0}})

        async def taken(*_: object) -> Survey:
            surveys.append(survey_of(0))
            return surveys[-1]

        monkeypatch.setattr("bigcrawl.scheduler.node.progress.survey", taken)
        counts = []

        async def look() -> None:
            await progress.survey_lately()
            counts.append(len(surveys))

        await look()
        exchange.pages = 3
        await look()
        activity._membership.reports["b"]["pages"] = 1
        await look()
        await look()
        progress._clock.advance(STALE_MS)
        await look()
        return counts

    assert asyncio.run(scenario()) == [1, 1, 2, 2, 3]
