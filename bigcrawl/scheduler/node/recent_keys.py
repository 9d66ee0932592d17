"""Recently sent keys, so that they are not sent again. Source: Mercator's cache of popular URLs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray


class RecentKeys:
    """Places of 8 bytes. A key's low bits name its place, which holds the last key put there.

    After as many new keys as there are places, 63 % of the old ones are forgotten. Until there are as many places as
    are allowed, they are doubled for every sixteenth as many new keys: a small crawl needs little memory, and forgets
    few keys for others that have the same place.
    """

    def __init__(self, places: int, places_max: int = 0) -> None:
        """Both are powers of two; `places` is above 1."""
        assert places > 1, "one place would hold any key at the start"
        assert places & (places - 1) == 0, "low bits name a place"
        self._places_max = places_max
        self._hold(np.zeros(places, dtype=np.uint64))
        self.clear()

    def __repr__(self) -> str:
        return f"<RecentKeys of {len(self._keys)}>"

    def _hold(self, keys: KeyArray) -> None:
        self._keys = keys
        self._places = keys.data
        self._mask = len(keys) - 1
        self._new_left = len(keys) // 16 if len(keys) < self._places_max else sys.maxsize

    def clear(self) -> None:
        # Each place gets a key that belongs in another one.
        self._keys[:] = np.arange(len(self._keys), dtype=np.uint64) ^ np.uint64(1)

    def remember(self, key: int) -> bool:
        place = key & self._mask
        if self._places[place] == key:
            return False
        self._places[place] = key
        self._count_new(1)
        return True

    def _count_new(self, keys: int) -> None:
        self._new_left -= keys
        if self._new_left < 0:
            grown = np.concatenate((self._keys, self._keys))
            own = np.arange(len(grown), dtype=np.uint64)
            np.copyto(grown, own ^ np.uint64(1), where=grown & np.uint64(len(grown) - 1) != own)
            self._hold(grown)

    def remember_each(self, keys: KeyArray) -> npt.NDArray[np.intp]:
        """Return the positions of distinct keys not seen recently, ascending."""
        places = (keys & np.uint64(self._mask)).view(np.int64)
        new = np.flatnonzero(self._keys[places] != keys)
        self._keys[places[new]] = keys[new]
        self._count_new(len(new))
        return new
