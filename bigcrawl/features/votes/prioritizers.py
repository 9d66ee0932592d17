"""The prioritizer `opic`: by the rank that a URL has received from the pages that link to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.features.votes.ranks import codes_of
from bigcrawl.features.votes.settings import BY_RANKS
from bigcrawl.scoring.scores import priorities_of

if TYPE_CHECKING:
    from bigcrawl.scheduler.queues.prioritizers import FoundUrls


class _ByReceived:
    """Scores URLs as OPIC does: by the quantile of their received rank among recently scored URLs; ranks only grow."""

    _REMEMBERED: Final = 1 << 16
    _PLACES: Final = (0.5, 0.8, 0.95, 1.0)
    _SCORES: Final = (0.0, 1 / 3, 2 / 3, 1.0)

    def __init__(self) -> None:
        self._bins = np.zeros(256)

    def __call__(self, found: FoundUrls) -> Any:
        codes = codes_of(found.received)
        self._bins *= max(0.0, 1 - len(codes) / self._REMEMBERED)
        self._bins += np.bincount(codes, minlength=256)
        below = np.cumsum(self._bins) - self._bins / 2
        places = below[codes] / max(self._bins.sum(), 1.0)
        return priorities_of(np.where(codes > 0, np.interp(places, self._PLACES, self._SCORES), 0.0))


PRIORITIZERS: Final = {BY_RANKS: _ByReceived}
