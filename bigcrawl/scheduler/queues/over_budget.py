"""The over-budget queue: URLs for which no turn of the window had room (IRLbot's Q_F).

It has no levels. Re-reads divide it into generations. `failed-<generation>` holds URLs that were re-read and are still
over budget, `arrived-<generation>` holds URLs that arrived during or after that re-read. URLs that fail go to the next
generation, so a re-read takes each URL once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.scheduler.queues.named_queues import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_PARTS = ("failed", "arrived")


class OverBudgetQueue:
    """The queues of generation n, which takes URLs, and of n - 1 while that is being re-read.

    Invariant: no other generation has URLs.
    """

    def __init__(self, queues: Queues, generation: int, *, is_rereading: bool) -> None:
        self._queues = queues
        self.generation = generation
        self.is_rereading = is_rereading
        self._waiting = sum(queues.waiting(name) for name in self._queue_names())

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<OverBudgetQueue urls={len(self)} generation={self.generation} rereading={self.is_rereading}>"

    @property
    def failed(self) -> int:
        return self._queues.waiting(f"failed-{self.generation}")

    @property
    def arrived(self) -> int:
        return self._queues.waiting(f"arrived-{self.generation}")

    def append(self, url: QueuedUrl, *, failed: bool) -> None:
        self._queues[f"{'failed' if failed else 'arrived'}-{self.generation}"].append(url)
        self._waiting += 1

    def begin_reread(self) -> None:
        assert not self.is_rereading, "a re-read ends before the next begins"
        self.generation += 1
        self.is_rereading = True

    def pop_block(self) -> Sequence[QueuedUrl]:
        for part in _PARTS:
            name = f"{part}-{self.generation - 1}"
            if self._queues.waiting(name):
                urls = self._queues[name].pop_block()
                self._waiting -= len(urls)
                return urls
            self._queues.remove(name)
        self.is_rereading = False
        return ()

    def next_urls(self, limit: int) -> list[QueuedUrl]:
        """Remove and return at least `limit` URLs to re-read, in whole blocks; fewer or none at the re-read's end."""
        urls: list[QueuedUrl] = []
        while len(urls) < limit:
            block = self.pop_block()
            if not block:
                break
            urls += block
        return urls

    def _queue_names(self) -> list[str]:
        oldest = self.generation - self.is_rereading
        return [f"{part}-{generation}" for generation in range(oldest, self.generation + 1) for part in _PARTS]

    def _check(self) -> None:
        names = [name for name in self._queues.names if name.partition("-")[0] in _PARTS]
        assert set(names) <= set(self._queue_names()), "URLs over budget are of this generation, or of the one re-read"
        assert self._waiting == sum(map(self._queues.waiting, names)), "every URL over budget is counted"
