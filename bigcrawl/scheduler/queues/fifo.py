"""First-in, first-out queues on disk, by name. A URL that leaves in the step that added it is never written."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.queues.segments import FIRST_BLOCK, Segment, SegmentLog, in_blocks

if TYPE_CHECKING:
    from collections.abc import KeysView, Mapping, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class Cursor(NamedTuple):
    """The next URL to read; `place` is an index in the block at `offset`."""

    segment: int
    offset: int
    place: int


class FifoState(NamedTuple):
    segments: tuple[Segment, ...]
    next_number: int
    head: Cursor
    waiting: int


EMPTY_FIFO = FifoState((), 0, Cursor(0, FIRST_BLOCK, 0), 0)


class Fifo:
    def __init__(self, log: SegmentLog, head: Cursor, count: int) -> None:
        self._log = log
        # Three numbers rather than a `Cursor`, because they change with each URL.
        self._segment, self._offset, self._place = head
        self._on_disk = count
        self._pending: deque[QueuedUrl] = deque()
        self.waiting = count
        # The decoded block at the head, and the offset after it; empty until read.
        self._block: Sequence[QueuedUrl] = ()
        self._behind = 0

    @classmethod
    def restore(cls, epoch: EpochDirectory, name: str, state: FifoState) -> Fifo:
        return cls(SegmentLog(epoch, name, state.segments, state.next_number, grows=True), state.head, state.waiting)

    def __len__(self) -> int:
        return self.waiting

    def __repr__(self) -> str:
        return f"<Fifo {self._log!r} on_disk={self._on_disk} pending={len(self._pending)}>"

    @property
    def log(self) -> SegmentLog:
        return self._log

    def fork(self) -> Fifo:
        head = Cursor(self._segment, self._offset, self._place)
        other = Fifo(self._log.fork(), head, self._on_disk)
        other._pending = self._pending.copy()
        other.waiting = self.waiting
        other._block, other._behind = self._block, self._behind
        return other

    def state(self) -> FifoState:
        assert not self._pending, "a queue is flushed before its state is written"
        head = Cursor(self._segment, self._offset, self._place)
        return FifoState(self._log.segments, self._log.next_number, head, self._on_disk)

    def append(self, url: QueuedUrl) -> None:
        self._pending.append(url)
        self.waiting += 1

    def extend(self, urls: Sequence[QueuedUrl]) -> None:
        self._pending.extend(urls)
        self.waiting += len(urls)

    def peek(self) -> QueuedUrl:
        if not self._on_disk:
            return self._pending[0]
        if not self._block:
            self._enter_block()
        return self._block[self._place]

    def pop(self) -> QueuedUrl:
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

    def pop_block(self) -> Sequence[QueuedUrl]:
        """Remove and return the rest of the first block, or all pending URLs."""
        if not self._on_disk:
            block: Sequence[QueuedUrl] = list(self._pending)
            self._pending.clear()
        else:
            self.peek()
            block = self._block[self._place :]
            self._on_disk -= len(block)
            self._offset, self._place, self._block = self._behind, 0, ()
            self._leave_consumed()
        self.waiting -= len(block)
        return block

    def flush(self) -> None:
        self._log.forget_ahead()
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
            self._log.forget_segment(segment.number)

    def _check(self) -> None:
        self._log._check()
        assert self.waiting == self._on_disk + len(self._pending), "waiting URLs are on disk or pending"
        written = sum(segment.urls for segment in self._log.segments)
        assert 0 <= self._on_disk <= written, "URLs waiting on disk were written and not dropped"
        if self._on_disk:
            numbers = [segment.number for segment in self._log.segments]
            assert self._segment >= numbers[0], "no segment before the head's is kept"


class Queues:
    """Queues by name; an unknown name creates an empty queue.

    A removed name must not be used again: a durable manifest may still need its files.
    """

    def __init__(self, epoch: EpochDirectory, queues: dict[str, Fifo], states: dict[str, FifoState]) -> None:
        self._epoch = epoch
        self._queues = queues
        self._states = states
        self._own: set[str] = set()

    @classmethod
    def restore(cls, epoch: EpochDirectory, states: Mapping[str, FifoState]) -> Queues:
        return cls(epoch, {name: Fifo.restore(epoch, name, state) for name, state in states.items()}, dict(states))

    def __repr__(self) -> str:
        return f"<Queues {len(self._queues)} changed={len(self._own)}>"

    def __getitem__(self, name: str) -> Fifo:
        queue = self._queues.get(name)
        if name in self._own and queue is not None:
            return queue
        queue = Fifo.restore(self._epoch, name, EMPTY_FIFO) if queue is None else queue.fork()
        self._own.add(name)
        self._queues[name] = queue
        return queue

    @property
    def names(self) -> KeysView[str]:
        return self._queues.keys()

    def waiting(self, name: str) -> int:
        queue = self._queues.get(name)
        return queue.waiting if queue is not None else 0

    def remove(self, name: str) -> None:
        if name in self._queues:
            assert not self._queues[name].waiting, f"{name} is empty when it is removed"
            del self._queues[name]
            self._states.pop(name, None)
            self._own.discard(name)

    def fork(self) -> Queues:
        return Queues(self._epoch, self._queues.copy(), self._states.copy())

    def flush(self) -> None:
        for name in sorted(self._own):
            self._queues[name].flush()
            self._states[name] = self._queues[name].state()

    def states(self) -> Mapping[str, FifoState]:
        """Return the states for the manifest. From now on, change only forks."""
        return self._states

    def _check(self) -> None:
        assert self._states == {name: queue.state() for name, queue in self._queues.items()}, "states are up to date"
        for queue in self._queues.values():
            queue._check()
