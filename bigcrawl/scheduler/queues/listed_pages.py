"""When pages changed, according to the sitemaps and feeds of their own sites that this node has read (before step 5).

A partition's sites are fetched by its owner. So the owner is the node that reads what a site says of its pages, and
nothing needs to be sent. It is only a hint, so it is kept in memory: without it, pages are visited when they are due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.revisiting.hints import TRUST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.config import RevisitConfig

PAGES_MAX: Final = 1 << 17
"""Some 15 MB; a site that lists more says nothing of the others."""


class ListedPages(BoundedDict[int, int]):
    """By URL key, when pages changed lately, in seconds since 1970. The thread that steps partitions reads it too."""

    def __init__(self, config: RevisitConfig, now_ms: Callable[[], int]) -> None:
        super().__init__(PAGES_MAX)
        self._lately_s = min(config.longest_s, TRUST * config.usual_s)
        self._now_ms = now_ms

    def note(self, pages: Iterable[tuple[int, int]]) -> None:
        """Note the key and time of change of pages, except for changes longer ago than any page waits."""
        since_s = self._now_ms() // 1000 - self._lately_s
        for key, modified_s in pages:
            if modified_s >= since_s:
                self.remember(key, modified_s)
