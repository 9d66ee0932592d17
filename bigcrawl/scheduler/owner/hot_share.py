"""How many URLs of a host are hot while others wait (step 7): as many as it is asked for in 25 seconds, no more.

The hot set has a set number of URLs, and a host that rests for half a minute needs one of them, not twenty-five. So the
longer hosts rest, the fewer URLs each has there, and the more hosts: about BIGCRAWL_HOT_URLS / share of them, which
gives BIGCRAWL_HOT_URLS / 25 pages a second, and with one URL each what so many hosts allow.
Source: PolyBot §3.5 (more hosts than speed times delay). Differs: what is counted is URLs, which is what memory holds.
"""

from __future__ import annotations

from math import ceil
from typing import Final

HOT_MS: Final = 25_000
"""For so long a host's share lasts: several steps of its partition, each of which fills it up again."""

PAGES: Final = 256
"""The rest that hosts have is the mean of about so many pages."""


class HotShare:
    """The share of a host, by how long the hosts of this node's latest pages were told to rest."""

    def __init__(self, delay_ms: int, urls_max: int) -> None:
        """Begin with the set delay; the share is never above `urls_max`."""
        self._rest_ms = float(delay_ms)
        self._urls_max = urls_max

    def __repr__(self) -> str:
        return f"<HotShare {self.urls} at {self._rest_ms:.0f} ms>"

    def note(self, rest_ms: int) -> None:
        """A page has ended, and its host rests for so long. Cost: 0.1 us."""
        self._rest_ms += (rest_ms - self._rest_ms) / PAGES

    @property
    def urls(self) -> int:
        """How many URLs of a host are hot before other hosts have theirs; at least 1."""
        if self._rest_ms * self._urls_max <= HOT_MS:
            return self._urls_max
        return max(1, ceil(HOT_MS / self._rest_ms))
