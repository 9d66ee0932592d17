"""Recently sent keys, so that they are not sent again. Source: Mercator's cache of popular URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray


class RecentKeys:
    """A fixed number of places of 8 bytes. A key's low bits name its place, which holds the last key put there.

    After as many new keys as there are places, 63 % of the old ones are forgotten.
    """

    def __init__(self, places: int) -> None:
        """`places` is a power of two above 1."""
        assert places > 1, "one place would hold any key at the start"
        assert places & (places - 1) == 0, "low bits name a place"
        self._keys: KeyArray = np.empty(places, dtype=np.uint64)
        self._places = self._keys.data
        self._mask = places - 1
        self.clear()

    def __repr__(self) -> str:
        return f"<RecentKeys of {len(self._keys)}>"

    def clear(self) -> None:
        # Each place gets a key that belongs in another one.
        self._keys[:] = np.arange(len(self._keys), dtype=np.uint64) ^ np.uint64(1)

    def remember(self, key: int) -> bool:
        """Return whether a key was not seen recently."""
        place = key & self._mask
        if self._places[place] == key:
            return False
        self._places[place] = key
        return True

    def remember_each(self, keys: KeyArray) -> npt.NDArray[np.intp]:
        """Return the positions of distinct keys not seen recently, ascending."""
        places = (keys & np.uint64(self._mask)).view(np.int64)
        new = np.flatnonzero(self._keys[places] != keys)
        self._keys[places[new]] = keys[new]
        return new
