from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dict that, when full, drops the key written longest ago. Write to it only with `remember`."""

    def __init__(self, entries_max: int) -> None:
        super().__init__()
        self._entries_max = entries_max

    def remember(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._entries_max:
            self.popitem(last=False)
