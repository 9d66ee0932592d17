"""URLs that wait on disk because the owner's spider cannot run their requests.

Each missing method has a queue `unrunnable-<name in hexadecimal>`. The queue of `callbacks.DAMAGED` has URLs whose
request cannot be decoded, and those of further methods than `NAMES_MAX`; it is released once after the owner has opened
the partition. An empty queue stays, because its name is used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.queued_url import UNRUNNABLE, QueuedUrl
from bigcrawl.scheduler.rules.callbacks import DAMAGED, Callbacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.queues.fifo import Queues

PREFIX = "unrunnable-"
NAMES_MAX = 32


class UnrunnableUrls:
    def __init__(self, queues: Queues, waiting: dict[str, int], untried: int) -> None:
        self._queues = queues
        self.waiting = waiting
        """URLs that wait for each method; 0 for a method that no longer has any."""
        self._untried = untried  # damaged ones that this owner has not tried
        self.released_ever = 0

    @classmethod
    def restore(cls, queues: Queues) -> UnrunnableUrls:
        names = [name for name in queues.names if name.startswith(PREFIX)]
        waiting = {method_of(name): queues.waiting(name) for name in names}
        return cls(queues, waiting, waiting.get(DAMAGED, 0))

    def fork(self, queues: Queues) -> UnrunnableUrls:
        other = UnrunnableUrls(queues, self.waiting.copy(), self._untried)
        other.released_ever = self.released_ever
        return other

    def __len__(self) -> int:
        return sum(self.waiting.values())

    def __repr__(self) -> str:
        return f"<UnrunnableUrls {self.waiting} untried={self._untried}>"

    def put(self, urls: Iterable[QueuedUrl], callbacks: Callbacks) -> None:
        for url in urls:
            try:
                method = callbacks.first_missing(look_at_body(url.body).methods) or DAMAGED
            except ValueError:
                method = DAMAGED
            if method not in self.waiting and len(self.waiting) >= NAMES_MAX:
                method = DAMAGED
            self._queues[queue_of(method)].append(url)
            self.waiting[method] = self.waiting.get(method, 0) + 1

    def releasable(self, callbacks: Callbacks) -> dict[str, int]:
        found = {method: count for method, count in self.waiting.items() if method != DAMAGED and callbacks.has(method)}
        return {method: count for method, count in {**found, DAMAGED: self._untried}.items() if count}

    def release(self, callbacks: Callbacks, urls_max: int) -> list[QueuedUrl]:
        """Remove and return URLs that may be tried, in whole blocks, until there are at least `urls_max`."""
        released: list[QueuedUrl] = []
        for method, count in self.releasable(callbacks).items():
            queue, left = self._queues[queue_of(method)], count
            while left > 0 and len(queue) and len(released) < urls_max:
                block = queue.pop_block()
                left -= len(block)
                self.waiting[method] -= len(block)
                released += block
            if method == DAMAGED:
                self._untried = max(0, left)
        self.released_ever += len(released)
        return [url._replace(flags=url.flags & ~UNRUNNABLE) for url in released]

    def _check(self) -> None:
        names = [name for name in self._queues.names if name.startswith(PREFIX)]
        assert self.waiting == {method_of(name): self._queues.waiting(name) for name in names}, "every URL is counted"
        assert 0 <= self._untried <= self.waiting.get(DAMAGED, 0), "an untried one waits"


def queue_of(method: str) -> str:
    return PREFIX + method.encode().hex()


def method_of(queue: str) -> str:
    return bytes.fromhex(queue.removeprefix(PREFIX)).decode()
