"""What Scrapy's engine touches: no exception leaves it, and it is told when to wait and when to end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request, Spider
from scrapy.utils.test import get_crawler

from bigcrawl.scheduler.scheduler import Scheduler
from tests.support.logs import of_bigcrawl
from tests.unit.scheduler.world import QUIET

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def new_scheduler(tmp_path: Path, **settings: Any) -> Scheduler:
    chosen = {f"BIGCRAWL_{name.upper()}": value for name, value in settings.items()}
    return Scheduler(get_crawler(Spider, {**QUIET, "BIGCRAWL_STATE_DIR": str(tmp_path), **chosen}))


def test_no_exception_leaves_what_the_engine_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that did could hang the engine for good; it is logged, and the answer is "not now"."""

    def broken() -> bool:
        raise ZeroDivisionError

    frontier = new_scheduler(tmp_path)
    handout = SimpleNamespace(buffer=SimpleNamespace(waiting=1), suspects=())
    frontier.attach(cast("Any", SimpleNamespace(handout=handout, outbox=None)), Spider(name="test"))
    frontier.engine.may_take = broken  # type: ignore[method-assign]
    assert frontier.next_request() is None
    assert frontier.enqueue_request(Request("http://a.example/")) is False
    ours = [record.levelname for record in of_bigcrawl(caplog)]
    assert ours == ["ERROR", "ERROR"]


def test_frontier_without_a_node_has_nothing_to_do(tmp_path: Path) -> None:
    """Before it is open, and when it could not be opened, the engine gets no requests and may close."""
    frontier = new_scheduler(tmp_path)
    assert frontier.next_request() is None
    assert not frontier.has_pending_requests()
    assert not frontier.enqueue_request(Request("http://a.example/"))


def test_wrong_setting_is_found_before_the_crawl_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the crawl with one line, as any other."""
    errors: list[Exception] = []
    monkeypatch.setattr(Scheduler, "fail", lambda _, error: errors.append(error))
    frontier = new_scheduler(tmp_path, stored_types=["shop.Price"])
    asyncio.run(frontier._open(Spider(name="test")))
    assert [str(error).partition(";")[0] for error in errors] == ["BIGCRAWL_STORED_TYPES has 'shop.Price'"]
    assert frontier.node is None


def test_limit_is_told_as_the_reason_by_who_knows_it(tmp_path: Path) -> None:
    """At BIGCRAWL_MAX_PAGES the engine must not close by itself: it would say "finished"."""
    frontier = new_scheduler(tmp_path, max_pages=3)
    handout = SimpleNamespace(held=[])
    node = SimpleNamespace(progress=SimpleNamespace(is_finished=False, has_reached_max=True), handout=handout)
    frontier.attach(cast("Any", node), Spider(name="test"))
    assert frontier.has_pending_requests()
    node.progress.is_finished = True
    assert not frontier.has_pending_requests()
