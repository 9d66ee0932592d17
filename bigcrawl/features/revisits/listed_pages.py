"""When pages changed, according to the sitemaps and feeds of this node's own sites; kept in memory only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.revisiting.rules import TRUST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.features.revisits.settings import RevisitConfig

PAGES_MAX: Final = 1 << 17
"""Pages remembered, about 15 MB; the oldest are forgotten."""


class ListedPages(BoundedDict[int, int]):
    def __init__(self, config: RevisitConfig) -> None:
        super().__init__(PAGES_MAX)
        self._lately_s = min(config.longest_s, TRUST * config.usual_s)

    def record_pages(self, pages: Iterable[tuple[int, int]], now_s: int) -> None:
        since_s = now_s - self._lately_s
        for key, modified_s in pages:
            if modified_s >= since_s:
                self.remember(key, modified_s)
