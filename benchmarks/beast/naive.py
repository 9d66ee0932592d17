"""The naive method of IRLbot §6.2, in plain form: Q, and Q_F, which is read whole whenever Q is empty."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.fifo import EMPTY_FIFO, Fifo

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class NaiveQueues:
    """Two queues made of the same segments as a partition's; a pass lasts until Q is empty.

    In a pass, the first B URLs of each PLD go to Q, the others to Q_F.
    """

    def __init__(self, directory: Path, files: Files, budget: int) -> None:
        self._epoch = EpochDirectory(directory, 1, files)
        files.make_directory(directory)
        self._budget = budget
        self._used: Counter[str] = Counter()
        self._passes = 0
        self._passed = self._new("queue-0")
        self._failed = self._new("failed-0")

    def __repr__(self) -> str:
        return f"<NaiveQueues Q={len(self._passed)} Q_F={len(self._failed)} passes={self._passes}>"

    def step(self, urls: Iterable[QueuedUrl], room: int) -> int:
        """Put new URLs into the queues and take up to `room`; returns how many were taken."""
        for url in urls:
            self._split(url)
        taken = self._take(room)
        if not taken and len(self._failed):
            self._split_again()
            taken = self._take(room)
        for queue in (self._passed, self._failed):
            queue.flush()
        self._epoch.remove_all_but([*self._passed.log.names(), *self._failed.log.names()])
        return taken

    def _split(self, url: QueuedUrl) -> None:
        self._used[url.host] += 1
        (self._passed if self._used[url.host] <= self._budget else self._failed).append(url)

    def _split_again(self) -> None:
        self._passes += 1
        self._used.clear()
        self._failed.flush()
        before, self._failed = self._failed, self._new(f"failed-{self._passes}")
        while len(before):
            for url in before.pop_block():
                self._split(url)
            if self._passed.waiting > 5000 or self._failed.waiting:
                self._passed.flush()
                self._failed.flush()

    def _take(self, room: int) -> int:
        taken = min(room, self._passed.waiting)
        for _ in range(taken):
            self._passed.pop()
        return taken

    def _new(self, name: str) -> Fifo:
        return Fifo.restore(self._epoch, name, EMPTY_FIFO)
