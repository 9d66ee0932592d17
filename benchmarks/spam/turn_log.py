"""Tells of every turn that became the current one of a partition: an extension of the crawl that is measured.

The file that the setting BENCH_TURN_LOG names gets a line whenever a step has left another turn or another quantum than
the step before: at_ms (since the epoch), partition, turn, quantum, URLs over budget.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.scheduler.owner.owned_partition import OwnedPartition

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class TurnLine(NamedTuple):
    """One line."""

    at_ms: int
    partition: int
    turn: int
    quantum: int
    over_budget: int


def read_turns(path: Path) -> list[TurnLine]:
    """The file, whole lines only."""
    *lines, _ = path.read_text().split("\n")
    return [TurnLine(*map(int, line.split("\t"))) for line in lines]


class TurnLog:
    """The extension."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._last: dict[int, tuple[int, int]] = {}
        fold = OwnedPartition.fold

        @functools.wraps(fold)
        def told(mine: OwnedPartition, *arguments: Any) -> Any:
            step = fold(mine, *arguments)
            self._note(mine)
            return step

        setattr(OwnedPartition, "fold", told)  # noqa: B010 - not an assignment to a method for mypy

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(crawler.settings["BENCH_TURN_LOG"]))

    def _note(self, mine: OwnedPartition) -> None:
        partition, state = mine.keys.partition, mine.disk.state.turns.state
        if self._last.get(partition) != (state.turn, state.quantum):
            self._last[partition] = (state.turn, state.quantum)
            line = TurnLine(
                time.time_ns() // 1_000_000, partition, state.turn, state.quantum, len(mine.disk.state.turns.over)
            )
            self._file.write("\t".join(map(str, line)) + "\n")
