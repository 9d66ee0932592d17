"""When pages were changed, as their own sites say in sitemaps and feeds that this node has read (before step 5).

A partition's sites are fetched by its owner, so what a site says of its pages is read where it is needed, and not sent
anywhere. It is kept in memory: it is a hint, and a node that starts visits pages when they are due.
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
    """Seconds since 1970 by URL key, of pages that were changed lately; read by the thread of the steps, too."""

    def __init__(self, config: RevisitConfig, now_ms: Callable[[], int]) -> None:
        super().__init__(PAGES_MAX)
        self._lately_s = min(config.longest_s, TRUST * config.usual_s)
        self._now_ms = now_ms

    def note(self, pages: Iterable[tuple[int, int]]) -> None:
        """Note when pages were changed: key and time of each. What no page has been waiting for so long is left out."""
        since_s = self._now_ms() // 1000 - self._lately_s
        for key, modified_s in pages:
            if modified_s >= since_s:
                self.remember(key, modified_s)
