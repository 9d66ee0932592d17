"""URLs that wait on disk for a due time.

They are in queues `due-<level>-<n>`. A URL that waits at least 2^l and less than 2^(l + 1) seconds goes to level l - 3.
The n-th queue of level k covers 2^k seconds from n * 2^k on, and is due in the middle of them. So a URL is early or
late by at most a sixteenth of its wait, is written once, and a level has at most 16 queues. URLs with few different
due times go to the lowest level, whatever they wait, and are late by at most a second.

`released_s` never decreases, so that an emptied queue, whose name must not be used again, gets no further URLs.

URLs without another visit, whose pages are known, are kept in the queue `kept`. They are not counted as waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.scheduler.queues.fifo import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

DUE = "due"
KEPT = "kept"
NEVER_S = 1 << 62
_PER_OCTAVE_BITS = 3  # eight queues an octave
_LEVEL_LEAST = 1


class TimedUrls:
    def __init__(self, queues: Queues, due: dict[str, int], released_s: int) -> None:
        self._queues = queues
        self.released_s = released_s
        """All queues due until then are released, or being released."""
        self.released_ever = 0
        self._due = due
        self._waiting = sum(map(queues.waiting, due))
        self._next_s = min(due.values(), default=NEVER_S)
        self.overdue = 0
        """URLs that were due at the last release and exceeded its limit."""

    @classmethod
    def restore(cls, queues: Queues, released_s: int) -> TimedUrls:
        due = {name: _due_s(name) for name in queues.names if name.startswith(f"{DUE}-")}
        return cls(queues, due, released_s)

    def fork(self, queues: Queues) -> TimedUrls:
        other = TimedUrls(queues, self._due.copy(), self.released_s)
        other.released_ever = self.released_ever
        return other

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<TimedUrls waiting={self._waiting} queues={len(self._due)} next_s={self._next_s}>"

    @property
    def next_s(self) -> int:
        return self._next_s

    def put(self, url: QueuedUrl, due_s: int, now_s: int, *, is_exact: bool = False) -> None:
        now_s = due_s if is_exact else max(now_s, self.released_s)
        level = max((max(due_s - now_s, 1)).bit_length() - 1 - _PER_OCTAVE_BITS, _LEVEL_LEAST)
        number = due_s >> level
        if (number << level) + (1 << level - 1) <= self.released_s:
            number = (self.released_s >> level) + 1
        name = f"{DUE}-{level}-{number}"
        if name not in self._due:
            self._due[name] = due = _due_s(name)
            self._next_s = min(self._next_s, due)
        self._queues[name].append(url)
        self._waiting += 1

    def keep_for_good(self, url: QueuedUrl) -> None:
        self._queues[KEPT].append(url)

    def release(self, now_s: int, urls_max: int) -> list[QueuedUrl]:
        """Remove and return due URLs, earliest first, in whole blocks, until there are at least `urls_max`."""
        released: list[QueuedUrl] = []
        for name, due_s in self._queues_until(now_s):
            if len(released) >= urls_max:
                break
            self.released_s = max(self.released_s, due_s)
            queue = self._queues[name]
            while len(queue) and len(released) < urls_max:
                released += queue.pop_block()
            if not len(queue):
                self._queues.remove(name)
                del self._due[name]
        self._waiting -= len(released)
        self._next_s = min(self._due.values(), default=NEVER_S)
        self.overdue = sum(self._queues.waiting(name) for name, _ in self._queues_until(now_s))
        self.released_ever += len(released)
        return released

    def _queues_until(self, now_s: int) -> Iterator[tuple[str, int]]:
        if self._next_s > now_s:
            return
        yield from sorted(((n, s) for n, s in self._due.items() if s <= now_s), key=lambda pair: (pair[1], pair[0]))

    def _check(self) -> None:
        names = {name for name in self._queues.names if name.startswith(f"{DUE}-")}
        assert set(self._due) == names, "every queue by time is known"
        assert self._waiting == sum(map(self._queues.waiting, names)), "the sum of the queues is kept"
        assert all(self._queues.waiting(name) for name in names), "an empty queue is removed"
        assert self._next_s == min(self._due.values(), default=NEVER_S), "the first one is known"


def _due_s(name: str) -> int:
    level, number = map(int, name.split("-")[1:])
    return (number << level) + (1 << level - 1)
