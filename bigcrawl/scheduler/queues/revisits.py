"""URLs that wait on disk for the time of their next visit (step 6).

They are in queues by time, `due-<level>-<n>`. A URL that waits at least 2^l and less than 2^(l + 1) seconds is put into
level l - 3. Each queue of that level covers 2^(l - 3) seconds, the n-th one from n * 2^(l - 3) on. A queue is due in
the middle of the time that it covers. So a visit is early or late by at most a sixteenth of its wait, a URL is written
once however long it waits, and a level has at most 16 queues: some 80 for waits between a day and a month. Waits below
16 seconds are in queues of 2 seconds each.

    arriving           due-<level>-<n>       its middle lies behind `released_s`
    due-<level>-<n>    placed as arriving    its middle has come; a portion in each step, earliest first

A page that its site lists is put into the queue of the time at which it is looked at next (`queues.looks`).

`released_s` never decreases, even if a clock is set back. So a queue that was emptied gets no further URLs: its name
must not be used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.scheduler.queues.named_queues import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

DUE = "due"
NEVER_S = 1 << 62
_PER_OCTAVE_BITS = 3  # eight queues an octave
_LEVEL_LEAST = 1


class Revisits:
    """The URLs that wait for their next visit, in the queues of a partition."""

    def __init__(self, queues: Queues, due: dict[str, int], released_s: int) -> None:
        self._queues = queues
        self.released_s = released_s
        """All queues that were due by then are released, or being released."""
        self.released_ever = 0
        """How many URLs were released since the partition was opened, with those that were put back."""
        self._due = due
        self._waiting = sum(map(queues.waiting, due))
        self._next_s = min(due.values(), default=NEVER_S)
        self.overdue = 0
        """How many were due at the last look, and not released: more than a step releases."""

    @classmethod
    def restore(cls, queues: Queues, released_s: int) -> Revisits:
        """Return those of the queues that are queues by time."""
        due = {name: _due_s(name) for name in queues.names if name.startswith(f"{DUE}-")}
        return cls(queues, due, released_s)

    def fork(self, queues: Queues) -> Revisits:
        """Return a copy to change, in a fork of the queues. This one stays as it is."""
        other = Revisits(queues, self._due.copy(), self.released_s)
        other.released_ever = self.released_ever
        return other

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<Revisits waiting={self._waiting} queues={len(self._due)} next_s={self._next_s}>"

    @property
    def next_s(self) -> int:
        """When the first queue is due; `NEVER_S` if there is none."""
        return self._next_s

    def put(self, url: QueuedUrl, due_s: int, now_s: int) -> None:
        """Let a URL wait until about this time."""
        now_s = max(now_s, self.released_s)
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

    def release(self, now_s: int, urls_max: int) -> list[QueuedUrl]:
        """Remove and return URLs whose time has come: whole blocks, until there are `urls_max`; earliest first."""
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
    """The middle of what a queue covers."""
    level, number = map(int, name.split("-")[1:])
    return (number << level) + (1 << level - 1)
