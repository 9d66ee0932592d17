"""What a pipeline does over and over beside the crawl."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.pipelines import page_upkeep
from tests.unit.pipelines.test_group_commit import Desk
from tests.unit.warc.elsewhere import grow_old, write_elsewhere

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_pipeline_shows_its_file_and_looks_again_for_abandoned_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was doubtful at the start is closed once it is quiet; the one that is written is never quiet."""
    monkeypatch.setattr(page_upkeep, "BEAT_S", 0.001)
    monkeypatch.setattr(page_upkeep, "QUIET_S", 0.001)
    left = tmp_path / "left.warc.gz.open"

    async def scenario() -> None:
        write_elsewhere(monkeypatch)
        at = Desk(tmp_path, monkeypatch)
        at.disk.close(at.disk.create(left))
        at.store(0)
        await at.until(lambda: at.pipeline.writes.safe_pages == 1)
        path = at.pipeline._writer.open_path
        assert path
        grow_old(left)
        await at.until(lambda: not left.exists())
        before = path.stat().st_mtime_ns
        await at.until(lambda: path.stat().st_mtime_ns > before)
        await at.pipeline.close_spider()
        assert at.stored() == ["http://a.example/0"]

    asyncio.run(scenario())
