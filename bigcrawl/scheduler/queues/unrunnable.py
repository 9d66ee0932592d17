"""URLs that wait on disk because the owner's spider cannot run their requests (steps 4 and 9).

They are in queues by what is missing: `unrunnable-<name of a method, in hexadecimal digits>`. The queue of
`callbacks.DAMAGED` has those whose request cannot be decoded, and those of further methods than `NAMES_MAX`.

    set aside by the node    unrunnable-...        flagged `UNRUNNABLE`, through the inbox
    unrunnable-<method>      placed as arriving    the owner's spider has the method; a portion in each step
    unrunnable-<damaged>     placed as arriving    those that waited when the owner opened the partition, once

So an owner tries no URL twice that it cannot run, and another owner, or the same one after a restart, tries it again.
An empty queue stays, because its name is used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.queued_url import UNRUNNABLE
from bigcrawl.scheduler.rules.callbacks import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.queues.named_queues import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.callbacks import Callbacks

PREFIX = "unrunnable-"
NAMES_MAX = 32


class Unrunnable:
    """These queues of a partition."""

    def __init__(self, queues: Queues, waiting: dict[str, int], untried: int) -> None:
        self._queues = queues
        self.waiting = waiting
        """How many URLs wait for each method; 0 for one that they waited for once."""
        self._untried = untried  # of the damaged ones, by this owner
        self.released_ever = 0

    @classmethod
    def restore(cls, queues: Queues) -> Unrunnable:
        """Return those of the queues that are such queues; all damaged URLs are to be tried."""
        names = [name for name in queues.names if name.startswith(PREFIX)]
        waiting = {method_of(name): queues.waiting(name) for name in names}
        return cls(queues, waiting, waiting.get(DAMAGED, 0))

    def fork(self, queues: Queues) -> Unrunnable:
        """Return a copy to change, in a fork of the queues. This one stays as it is."""
        other = Unrunnable(queues, self.waiting.copy(), self._untried)
        other.released_ever = self.released_ever
        return other

    def __len__(self) -> int:
        return sum(self.waiting.values())

    def __repr__(self) -> str:
        return f"<Unrunnable {self.waiting} untried={self._untried}>"

    def put(self, urls: Iterable[QueuedUrl], callbacks: Callbacks) -> None:
        """Let URLs wait for what they need."""
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
        """Return how many URLs may be tried now, by method."""
        found = {method: count for method, count in self.waiting.items() if method != DAMAGED and callbacks.has(method)}
        return {method: count for method, count in {**found, DAMAGED: self._untried}.items() if count}

    def release(self, callbacks: Callbacks, urls_max: int) -> list[QueuedUrl]:
        """Remove and return URLs that may be tried: whole blocks, until there are `urls_max`."""
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
    """Return the name of the queue of URLs that wait for a method."""
    return PREFIX + method.encode().hex()


def method_of(queue: str) -> str:
    """Return the method that the URLs of such a queue wait for."""
    return bytes.fromhex(queue.removeprefix(PREFIX)).decode()
