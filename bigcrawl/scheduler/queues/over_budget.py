"""The over-budget queue: URLs for which no turn of the window had room (IRLbot's Q_F).

It has no levels, and is read from end to end at times, which splits it into generations. Of a generation there are
two queues, `failed-<generation>` and `arrived-<generation>`: what was re-read and is still over budget, and what
came while that was going on, or since. What fails goes to the next generation, so a re-read takes each URL once.
Why no URL passes one of the same PLD is told in `bigcrawl.scheduler.budgets.placement`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.scheduler.queues.named_queues import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_PARTS = ("failed", "arrived")


class OverBudget:
    """The queues of the generation that takes URLs, n, and while it is re-read, of n - 1.

    Invariant: no other generation has URLs.
    """

    def __init__(self, queues: Queues, generation: int, *, is_rereading: bool) -> None:
        self._queues = queues
        self.generation = generation
        self.is_rereading = is_rereading
        self._waiting = sum(queues.waiting(name) for name in self._names())

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<OverBudget urls={len(self)} generation={self.generation} rereading={self.is_rereading}>"

    @property
    def failed(self) -> int:
        """Those that the last re-read, or the one that is going on, has let fail."""
        return self._queues.waiting(f"failed-{self.generation}")

    @property
    def arrived(self) -> int:
        """Those that came since it began."""
        return self._queues.waiting(f"arrived-{self.generation}")

    def append(self, url: QueuedUrl, *, failed: bool) -> None:
        """Put a URL behind all others that arrived, or that were re-read and failed."""
        self._queues[f"{'failed' if failed else 'arrived'}-{self.generation}"].append(url)
        self._waiting += 1

    def begin_reread(self) -> None:
        """Let all that waits be re-read; what comes from here on belongs to the next generation."""
        assert not self.is_rereading, "a re-read ends before the next begins"
        self.generation += 1
        self.is_rereading = True

    def pop_block(self) -> Sequence[QueuedUrl]:
        """Take URLs that neighbour each other, in order; none, when the re-read has come to its end."""
        for part in _PARTS:
            name = f"{part}-{self.generation - 1}"
            if self._queues.waiting(name):
                urls = self._queues[name].pop_block()
                self._waiting -= len(urls)
                return urls
            self._queues.remove(name)
        self.is_rereading = False
        return ()

    def _names(self) -> list[str]:
        oldest = self.generation - self.is_rereading
        return [f"{part}-{generation}" for generation in range(oldest, self.generation + 1) for part in _PARTS]

    def _check(self) -> None:
        names = [name for name in self._queues.names if name.partition("-")[0] in _PARTS]
        assert set(names) <= set(self._names()), "URLs over budget are of this generation, or of the one re-read"
        assert self._waiting == sum(map(self._queues.waiting, names)), "every URL over budget is counted"
