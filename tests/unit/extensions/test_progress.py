"""The line of progress, and what is printed at the end of a crawl."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.extensions import progress as progress_module
from bigcrawl.extensions.progress import Progress
from bigcrawl.politeness.addresses import AddressGuard
from bigcrawl.redisdb.scripts import NodesMade
from bigcrawl.scheduler.adapter.registry import mark_failed, register
from bigcrawl.scheduler.crawl.survey import Survey
from bigcrawl.scheduler.handout.concurrency import ConcurrencyLimit
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path


class Frontier:
    """What the extension asks a frontier for."""

    guard = AddressGuard(True)

    def __init__(self, tmp_path: Path, answers: list[Survey | Exception]) -> None:
        self.config = make_config(tmp_path, "crawl")
        self.answers = answers
        self.asked = asyncio.Event()
        self.last_survey: Survey | None = Survey(4, counts=Counter({"status:200": 7, "appended_urls": 9}))
        self.crowd = ConcurrencyLimit(self.config.pace, ManualClock(), lambda limit: None)
        self.node = SimpleNamespace(
            progress=SimpleNamespace(pages_before=3, survey_lately=self.survey),
            handout=SimpleNamespace(crowd=self.crowd),
            membership=SimpleNamespace(made_by_all=NodesMade(items=7)),
        )

    async def survey(self) -> Survey:
        answer = self.answers.pop(0)
        if not self.answers:
            self.asked.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


def seen(pages: int) -> Survey:
    counts = Counter({"status:200": pages, "bytes": pages * 1_000_000, "seen": 50})
    return Survey(4, hosts_ready=1, hosts_waiting=2, hosts_busy=3, urls_disk=40, counts=counts)


def new_progress(frontier: Frontier, every_s: float = 0.001) -> Progress:
    crawler = get_crawler(Spider)
    register(crawler, frontier)  # type: ignore[arg-type]
    return Progress(crawler, every_s)


def test_progress_is_off_when_its_time_is_zero() -> None:
    """BIGCRAWL_PROGRESS_SECONDS 0: not configured, and why."""
    with pytest.raises(NotConfigured, match="BIGCRAWL_PROGRESS_SECONDS"):
        Progress.from_crawler(get_crawler(Spider, {"BIGCRAWL_PROGRESS_SECONDS": 0}))


def test_line_tells_pages_rate_hosts_and_urls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line a while, with the rate since the line before; a Redis that is away costs a line, no more."""
    now = iter([100.0, 102.0, 104.0])
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: next(now)))

    async def scenario() -> None:
        frontier = Frontier(tmp_path, [seen(13), TransientStoreError("away"), seen(23)])
        progress = new_progress(frontier)
        progress.spider_opened()
        await frontier.asked.wait()
        await asyncio.sleep(0)
        assert progress._task is not None
        progress._task.cancel()

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    hosts_and_urls = "hosts: 1 ready, 2 waiting, 3 busy; URLs: 40 waiting (done in 8 s), 50 seen; 7 items"
    assert [record.getMessage() for record in caplog.records if record.name == progress_module.__name__] == [
        f"13 pages, 5.0 pages/s; {hosts_and_urls}; 13.0 MB",
        f"23 pages, 5.0 pages/s; {hosts_and_urls}; 23.0 MB",
    ]


def test_line_tells_of_a_crowd_while_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many pages are fetched at a time, and how many there might be; nothing where it is all of them."""
    frontier = Frontier(tmp_path, [])
    progress = new_progress(frontier)
    assert progress._log_line(frontier, seen(13), 1.0).endswith("; 13.0 MB")  # type: ignore[arg-type]
    assert "crowded" not in " ".join(progress._line_parts(frontier, seen(13), 1.0))  # type: ignore[arg-type]
    monkeypatch.setattr(ConcurrencyLimit, "is_crowded", True)
    crowded = "; 13.0 MB; crowded: 16 of 16 fetches at a time"
    assert progress._log_line(frontier, seen(13), 1.0).endswith(crowded)  # type: ignore[arg-type]
    assert progress._line_parts(frontier, seen(13), 1.0)[2] == "crowded: 16 of 16"  # type: ignore[arg-type]


def test_row_says_what_is_made_when_it_is_done_and_what_is_wrong(tmp_path: Path) -> None:
    """Behind pages and rate: why nothing moves, if nothing does; items; what waits, and how long; the log."""
    frontier = Frontier(tmp_path, [])
    progress = new_progress(frontier)
    assert progress._line_parts(frontier, seen(13), 0.1) == [  # type: ignore[arg-type]
        *("13 pages", "0.1/s", "7 items", "40 URLs wait (done in 7 minutes)", "3 hosts busy")
    ]
    frontier.node.membership.made_by_all = NodesMade(7, 2, 1)
    parts = progress._line_parts(frontier, seen(13), 1.0)  # type: ignore[arg-type]
    assert parts[4:6] == ["1 errors", "2 warnings"]
    assert "; log: 2 warnings, 1 errors" in progress._log_line(frontier, seen(13), 1.0)  # type: ignore[arg-type]


def test_summary_is_printed_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last look at the crawl becomes the table; the task ends."""
    progress = new_progress(Frontier(tmp_path, []), every_s=60)

    async def scenario() -> None:
        progress.spider_opened()
        progress.spider_closed("finished")

    asyncio.run(scenario())
    assert capsys.readouterr().out == ""  # Scrapy has something to log yet
    asyncio.run(progress.engine_stopped())
    assert "crawl crawl: finished" in capsys.readouterr().out


@pytest.mark.parametrize("case", ["redis away at the end", "never begun", "another scheduler"])
def test_nothing_is_printed_where_there_is_nothing_to_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """No last look, a start that failed, no frontier: no table."""
    frontier = Frontier(tmp_path, [])
    progress = new_progress(frontier)
    if case == "redis away at the end":
        frontier.last_survey = None
    elif case == "never begun":
        frontier.last_survey = Survey(4)
        mark_failed(progress._crawler)
    else:
        progress = Progress(get_crawler(Spider), 1)
    progress.spider_closed("finished")
    asyncio.run(progress.engine_stopped())
    assert capsys.readouterr().out == ""


def test_numbers_of_a_large_crawl_stay_short(tmp_path: Path) -> None:
    """A row of a crawl of billions has room for as much as one of hundreds."""
    frontier = Frontier(tmp_path, [])
    progress = new_progress(frontier)
    small, large = (
        progress._line_parts(frontier, seen(pages), 123.4)  # type: ignore[arg-type]
        for pages in (13, 1_234_567_890)
    )
    assert small[0] == "13 pages"
    assert large[0] == "1.23G pages"
    assert len(", ".join(large)) < 80
