from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.queues.fifo import EMPTY_FIFO, Fifo

if TYPE_CHECKING:
    from collections.abc import KeysView, Mapping

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.fifo import FifoState


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
        """Return the states for the manifest. From now on, only forks may be changed."""
        return self._states

    def _check(self) -> None:
        assert self._states == {name: queue.state() for name, queue in self._queues.items()}, "states are up to date"
        for queue in self._queues.values():
            queue._check()
