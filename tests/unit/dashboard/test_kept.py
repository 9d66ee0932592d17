"""The crawl that a thread of the dashboard keeps open: opened once a minute, and after each failure."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.dashboard.kept import KEPT_S, KeptCrawl
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.views.opened_crawl import in_crawl
from tests.unit.commands.steering.test_budget import begun
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    return make_config(tmp_path, crawl_name, redis_url)


def begin(config: Config) -> None:
    async def open_record() -> None:
        async with begun(config):
            pass

    asyncio.run(open_record())


class Question:
    """Asks Redis something, and remembers of which crawl; it fails when it is told to."""

    def __init__(self) -> None:
        self.crawls: list[OpenedCrawl] = []
        self.failure: Exception | None = None

    async def __call__(self, crawl: OpenedCrawl) -> dict[str, Any]:
        self.crawls.append(crawl)
        if self.failure is not None:
            raise self.failure
        return {"nodes": len(await crawl.nodes())}


def test_crawl_is_opened_once_a_minute(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been deleted and begun anew meanwhile."""
    begin(config)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    kept, question = KeptCrawl(config), Question()
    for advance_s in (0, 1, KEPT_S - 2, 1):
        now[0] += advance_s
        assert kept.query(question) == {"nodes": 0}
    first, second, third, last = question.crawls
    assert first is second is third
    assert last is not first
    kept.close()
    kept.close()


def test_crawl_is_opened_anew_after_a_failure(config: Config) -> None:
    """Whatever failed: a Redis that is away, or a crawl that did not exist then."""
    kept, question = KeptCrawl(config), Question()
    with pytest.raises(ConfigError, match="knows no crawl"):
        kept.query(question)
    begin(config)
    kept.query(question)
    question.failure = TransientStoreError("away")
    with pytest.raises(TransientStoreError):
        kept.query(question)
    question.failure = None
    assert kept.query(question) == {"nodes": 0}
    first, failed, last = question.crawls
    assert first is failed
    assert last is not first
    kept.close()


def test_actions_ask_the_crawl_that_is_kept_open(config: Config) -> None:
    """Only within the block; another thread or a command opens its own."""
    begin(config)
    kept, question = KeptCrawl(config), Question()
    with kept.in_use():
        assert in_crawl(config, question) == in_crawl(config, question) == {"nodes": 0}
    in_crawl(config, question)
    first, second, own = question.crawls
    assert first is second
    assert own is not first
