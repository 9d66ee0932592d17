"""What is shipped is counted where stats may be changed."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bigcrawl.config import read_config
from bigcrawl.page_index.index_files import index_file
from bigcrawl.pipelines import page_shipping, page_uploader
from bigcrawl.pipelines.engine_pause import EnginePause
from bigcrawl.pipelines.page_shipping import WarcUploads
from tests.support.running.processes import wait_until
from tests.unit.page_index.test_index_files import warc_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LONG_S = 120.0


class Stats:
    """Counts, and notes the threads that do."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.threads: set[int] = set()

    def inc_value(self, key: str, count: int = 1) -> None:
        self.counts[key] = self.counts.get(key, 0) + count
        self.threads.add(threading.get_ident())


def test_stats_are_changed_in_the_crawls_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each look, and at the end: the uploader has a thread of its own, which changes none."""
    looks: list[Any] = []

    def call_later(_seconds: float, look: Any) -> Any:
        looks.append(look)
        return SimpleNamespace(cancel=lambda: None)

    monkeypatch.setattr(page_shipping, "call_later", call_later)
    monkeypatch.setattr(page_shipping, "run_in_thread", asyncio.to_thread)
    monkeypatch.setattr(page_uploader, "REST_S", LONG_S)  # the store is asked a second time at the end, and not before
    warc, store = tmp_path / "warc", tmp_path / "store"
    warc.mkdir()
    path = warc_file(warc)
    index_file(path, ["cdxj"])
    size = sum(each.stat().st_size for each in warc.iterdir())
    stats = Stats()
    crawler: Any = SimpleNamespace(stats=stats, engine=SimpleNamespace(paused=False))
    config = read_config({"BIGCRAWL_WARC_DISK_PERCENT_MAX": 100})
    shipping = WarcUploads(crawler, warc, config.crawl, f"file://{store}", EnginePause(crawler))
    shipping.begin()
    wait_until(lambda: bool(shipping._uncounted), "the store, which is not there, was asked")
    looks.pop()()
    assert stats.counts == {"bigcrawl/warc/upload_errors": 1}
    store.mkdir()
    asyncio.run(shipping.end(LONG_S))
    assert not path.exists()
    assert stats.counts.pop("bigcrawl/warc/upload_errors") == 1
    assert stats.counts == {"bigcrawl/warc/uploaded_files": 1, "bigcrawl/warc/uploaded_bytes": size}
    assert stats.threads == {threading.get_ident()}
