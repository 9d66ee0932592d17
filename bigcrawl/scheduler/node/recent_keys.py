"""Recently sent keys, so that they are not sent again. Source: Mercator's cache of popular URLs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray


_PORTION = 1 << 15  # fits into a cache


class RecentKeys:
    """A table of pairs of places, 8 bytes each. A key's low bits name its pair, which holds the last two keys it met.

    So a key that recurs stays, however many others come once. The table is doubled, up to `places_max` places, each
    time that a sixteenth as many new keys have come: a small crawl needs little memory, and few keys are displaced.
    """

    def __init__(self, places: int, places_max: int = 0) -> None:
        """Both are powers of two; `places` is above 2."""
        assert places > 2, "one pair would hold any key at the start"
        assert places & (places - 1) == 0, "low bits name a pair"
        self._places_max = places_max
        self._hold(np.empty(places, dtype=np.uint64))
        self.clear()

    def __repr__(self) -> str:
        return f"<RecentKeys of {len(self._keys)}>"

    def _hold(self, keys: KeyArray) -> None:
        self._keys = keys
        self._places = keys.data
        self._mask = len(keys) // 2 - 1
        self._new_left = len(keys) // 16 if len(keys) < self._places_max else sys.maxsize

    def clear(self) -> None:
        self._keys[:] = (np.arange(len(self._keys), dtype=np.uint64) >> np.uint64(1)) ^ np.uint64(1)

    def remember(self, key: int) -> bool:
        """Return whether a key was not seen recently."""
        place, places = (key & self._mask) << 1, self._places
        if places[place] == key:
            return False
        is_new = places[place + 1] != key
        places[place + 1], places[place] = places[place], key
        self._count_new(int(is_new))
        return is_new

    def remember_each(self, keys: KeyArray) -> npt.NDArray[np.intp]:
        """Return the positions of distinct keys not seen recently, ascending."""
        held, places = self._keys, (keys & np.uint64(self._mask)).view(np.int64) << 1
        others = np.flatnonzero(held[places] != keys)
        places, others_keys = places[others], keys[others]
        new: npt.NDArray[np.intp] = others[held[places + 1] != others_keys]
        held[places + 1] = held[places]
        held[places] = others_keys
        self._count_new(len(new))
        return new

    def _count_new(self, keys: int) -> None:
        self._new_left -= keys
        if self._new_left < 0:
            self._hold(np.concatenate((self._keys, self._keys)))
            self._empty_others()

    def _empty_others(self) -> None:
        """Empty the places whose keys belong to other pairs, by a key that cannot be there. Cost: 7 ms a million."""
        for start in range(0, len(self._keys), _PORTION):
            held = self._keys[start : start + _PORTION]
            pairs = np.arange(start, start + len(held), dtype=np.uint64) >> np.uint64(1)
            np.copyto(held, pairs ^ np.uint64(1), where=held & np.uint64(self._mask) != pairs)
