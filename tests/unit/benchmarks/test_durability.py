"""The table of the benchmark of syncs has a line for each setting, of the middle of its rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.crawl.figures import Measurement
from benchmarks.durability import sync_s, table

if TYPE_CHECKING:
    from pathlib import Path


def measured(pages_per_s: float, crawler_ms: float, *trouble: str) -> Measurement:
    return Measurement("bigcrawl", 30, 9, 0, 0, pages_per_s, crawler_ms, 0.5, 0.1, 1, 0.3, 1 << 20, trouble)


def test_the_middle_of_quiet_rounds_is_told_for_each_setting() -> None:
    """With the range of all; a round that was disturbed counts only in the range."""
    runs = {
        0.0: [measured(600, 1.0), measured(640, 1.1), measured(620, 1.2), measured(100, 9.0, "disturbed")],
        0.1: [measured(610, 1.3)],
    }
    head, off, on = table(runs)
    assert head.split("  ")[0] == "synced"
    assert " ".join(off.split()) == "when a file is full 620 1.100 ms 1.600 ms 1.500 to 9.500 ms"
    assert " ".join(on.split()) == "every 0.1 s 610 1.300 ms 1.800 ms 1.800 to 1.800 ms"


def test_a_sync_of_this_disk_is_timed_and_leaves_nothing(tmp_path: Path) -> None:
    """A time above nothing, and no file."""
    assert sync_s(tmp_path) > 0
    assert not list(tmp_path.iterdir())
