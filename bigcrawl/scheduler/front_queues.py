"""The front queues: one FIFO on disk for each priority level, and the biased selector over them (step 6).

A URL that is chosen in the step that brought it is never written here; what is left of a step is appended
to its level's segments when the step is flushed. Memory holds one decoded block a level.
Source: Mercator's front queues, as IRLbot §2 and PolyBot §5 describe them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.segments import FIRST_BLOCK, Segment, SegmentLog, in_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bigcrawl.scheduler.epochs import EpochDirectory
    from bigcrawl.scheduler.queued_url import QueuedUrl

# Least priority of each level but the lowest: below zero, ordinary, raised, high, urgent.
_LEVEL_STARTS = (0, 1, 10, 100)
LEVELS = len(_LEVEL_STARTS) + 1

# Shares of the selector, lowest level first: a level gets twice what the one below it gets, and none starves.
WEIGHTS = (1, 2, 4, 8, 16)

assert len(WEIGHTS) == LEVELS


def level_of(priority: int) -> int:
    """Return the front queue of a priority: 0 (below zero), 1 (0), 2 (1..9), 3 (10..99), 4 (from 100)."""
    return bisect_right(_LEVEL_STARTS, priority)


class Cursor(NamedTuple):
    """The next URL to read: segment, offset of its block, place in the block."""

    segment: int
    offset: int
    place: int


class LevelState(NamedTuple):
    """One level as the manifest holds it."""

    segments: tuple[Segment, ...]
    next_number: int
    head: Cursor
    waiting: int


EMPTY_LEVEL = LevelState((), 0, Cursor(0, FIRST_BLOCK, 0), 0)


class LevelQueue:
    """One level: a FIFO of which the front is on disk and the newest, until flushed, in memory."""

    def __init__(self, log: SegmentLog, head: Cursor, count: int) -> None:
        self._log = log
        # What `Cursor` holds; three numbers, because they move with each URL.
        self._segment, self._offset, self._place = head
        self._on_disk = count
        self._pending: deque[QueuedUrl] = deque()
        # How many URLs wait, on disk and pending; `len`, for who asks for each URL.
        self.waiting = count
        # The block that the head stands in, decoded, and the offset behind it; empty before it is read.
        self._block: Sequence[QueuedUrl] = ()
        self._behind = 0

    def __len__(self) -> int:
        return self.waiting

    def __repr__(self) -> str:
        return f"<LevelQueue {self._log!r} on_disk={self._on_disk} pending={len(self._pending)}>"

    @property
    def log(self) -> SegmentLog:
        """Its segments."""
        return self._log

    def fork(self) -> LevelQueue:
        """Return a copy to work on; this one stays as it is."""
        head = Cursor(self._segment, self._offset, self._place)
        other = LevelQueue(self._log.fork(), head, self._on_disk)
        other._pending = self._pending.copy()
        other.waiting = self.waiting
        other._block, other._behind = self._block, self._behind
        return other

    def state(self) -> LevelState:
        """Return what the manifest needs; everything is flushed."""
        assert not self._pending, "a queue is flushed before its state is written"
        head = Cursor(self._segment, self._offset, self._place)
        return LevelState(self._log.segments, self._log.next_number, head, self._on_disk)

    def append(self, url: QueuedUrl) -> None:
        """Put a URL behind all others."""
        self._pending.append(url)
        self.waiting += 1

    def peek(self) -> QueuedUrl:
        """Return the first URL; the queue is not empty."""
        if not self._on_disk:
            return self._pending[0]
        if not self._block:
            self._enter_block()
        return self._block[self._place]

    def pop(self) -> QueuedUrl:
        """Take the first URL; the queue is not empty."""
        self.waiting -= 1
        if not self._on_disk:
            return self._pending.popleft()
        url = self.peek()
        self._on_disk -= 1
        self._place += 1
        if self._place == len(self._block):
            self._offset, self._place, self._block = self._behind, 0, ()
            self._leave_consumed()
        return url

    def flush(self) -> None:
        """Write what is pending to disk."""
        if self._pending:
            places = self._log.append(in_blocks(list(self._pending)))
            if not self._on_disk:
                self._segment, self._offset, self._place, self._block = places[0].segment, places[0].offset, 0, ()
            self._on_disk += len(self._pending)
            self._pending.clear()
            self._leave_consumed()

    def _enter_block(self) -> None:
        self._leave_consumed()
        self._block, self._behind = self._log.read(self._segment, self._offset)

    def _leave_consumed(self) -> None:
        for segment in self._log.segments:
            if segment.number > self._segment:
                self._segment, self._offset, self._place = segment.number, FIRST_BLOCK, 0
            at_head = segment.number == self._segment
            if at_head and (self._offset < segment.length or segment.number == self._log.open_tail):
                return
            self._log.drop(segment.number)

    def _check(self) -> None:
        self._log._check()
        assert self.waiting == self._on_disk + len(self._pending), "what waits is on disk or pending"
        written = sum(segment.urls for segment in self._log.segments)
        assert 0 <= self._on_disk <= written, "what waits on disk was written and not dropped"
        if self._on_disk:
            numbers = [segment.number for segment in self._log.segments]
            assert self._segment >= numbers[0], "no segment before the head's is kept"


class Selector:
    """Smooth weighted round robin: each turn goes to the level that is furthest behind its share.

    Deterministic: the credits are part of the manifest, so that a fold repeated is the same fold.
    """

    def __init__(self, balance: Iterable[int] = (0,) * LEVELS) -> None:
        self._credits = list(balance)

    def __repr__(self) -> str:
        return f"<Selector credits={self._credits}>"

    @property
    def credits(self) -> tuple[int, ...]:
        """How far each level is behind its share."""
        return tuple(self._credits)

    def choose(self, levels: Sequence[int]) -> int:
        """Return the level whose turn it is among those given; at least one."""
        if len(levels) == 1:
            return levels[0]
        for level in levels:
            self._credits[level] += WEIGHTS[level]
        best = max(levels, key=lambda level: (self._credits[level], level))
        self._credits[best] -= sum(WEIGHTS[level] for level in levels)
        return best


class FrontQueues:
    """All levels of a partition."""

    def __init__(self, queues: Sequence[LevelQueue], selector: Selector) -> None:
        self._queues = list(queues)
        self.selector = selector

    @classmethod
    def restore(cls, epoch: EpochDirectory, levels: Sequence[LevelState], balance: Iterable[int]) -> FrontQueues:
        """Return the queues a manifest describes; its segments are sealed."""
        queues = [
            LevelQueue(
                SegmentLog(epoch, f"queue-{level}", state.segments, state.next_number),
                state.head,
                state.waiting,
            )
            for level, state in enumerate(levels)
        ]
        return cls(queues, Selector(balance))

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def __repr__(self) -> str:
        return f"<FrontQueues waiting={self.counts()}>"

    @property
    def queues(self) -> Sequence[LevelQueue]:
        """The levels, lowest first."""
        return self._queues

    def counts(self) -> tuple[int, ...]:
        """Return how many URLs wait in each level, lowest first."""
        return tuple(map(len, self._queues))

    def fork(self) -> FrontQueues:
        """Return a copy to work on; this one stays as it is."""
        return FrontQueues([queue.fork() for queue in self._queues], Selector(self.selector.credits))

    def append(self, url: QueuedUrl) -> None:
        """Put a URL behind all others of its level."""
        self._queues[level_of(url.priority)].append(url)

    def choose_level(self) -> int | None:
        """Return the level whose turn it is, or None when all are empty."""
        levels = [level for level, queue in enumerate(self._queues) if queue.waiting]
        return self.selector.choose(levels) if levels else None

    def flush(self) -> None:
        """Write what is pending to disk."""
        for queue in self._queues:
            queue.flush()

    def states(self) -> tuple[LevelState, ...]:
        """Return what the manifest needs; everything is flushed."""
        return tuple(queue.state() for queue in self._queues)

    def names(self) -> list[str]:
        """Return the names of all files the queues need."""
        return [name for queue in self._queues for name in queue.log.names()]

    def _check(self) -> None:
        assert len(self._queues) == LEVELS, "there is one queue a level"
        for queue in self._queues:
            queue._check()
