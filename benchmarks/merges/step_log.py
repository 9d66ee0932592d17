"""Tells of every step and every durable round of a node: an extension of the crawl that is measured.

The file that the setting BENCH_STEP_LOG names gets a line when one has ended: kind, start_ms, end_ms, partition, keys
written into runs; times are since the epoch.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.scheduler.owner.owned_partition import OwnedPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler

STEP, DURABLE = "step", "durable"


class Span(NamedTuple):
    """One step or durable round; `keys_written` into new runs of URLSeen."""

    kind: str
    start_ms: int
    end_ms: int
    partition: int
    keys_written: int

    @property
    def line(self) -> str:
        return "\t".join(map(str, self)) + "\n"

    @classmethod
    def of(cls, line: str) -> Span:
        kind, *numbers = line.split("\t")
        return cls(kind, *map(int, numbers))


def read_spans(path: Path) -> list[Span]:
    """The file, whole lines only."""
    *lines, _ = path.read_text().split("\n")
    return [Span.of(line) for line in lines]


class StepLog:
    """The extension."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        for name, kind in (("fold", STEP), ("make_durable", DURABLE)):
            setattr(OwnedPartition, name, self._timed(getattr(OwnedPartition, name), kind))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(crawler.settings["BENCH_STEP_LOG"]))

    def _timed(self, method: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def timed(mine: OwnedPartition, *arguments: Any) -> Any:
            before, start_ms = _runs(mine), _now_ms()
            answer = method(mine, *arguments)
            end_ms, after = _now_ms(), _runs(mine)
            written = sum(keys for name, keys in after.items() if name not in before)
            self._file.write(Span(kind, start_ms, end_ms, mine.keys.partition, written).line)
            return answer

        return timed


def _runs(mine: OwnedPartition) -> dict[str, int]:
    return {run.name: run.keys for run in mine.disk.committed.manifest.tables["seen"].runs}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
