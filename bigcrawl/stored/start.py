from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.adapter.spider_start import SpiderStart

if TYPE_CHECKING:
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
    from bigcrawl.scheduler.adapter.spider_start import Telling


class StoredStart(SpiderStart):
    """The start of a run over stored pages, without a claim; `tell` gets each stored robots.txt and its sitemaps."""

    def __init__(self, flow: SpiderFlow, shutdown: Shutdown, *, has_all: bool) -> None:
        """With `has_all`, the spider is given all pages and makes no start requests."""
        super().__init__(flow, shutdown)
        self._has_all = has_all
        self.is_under_way = False
        self.tell: Telling | None = None

    def begin(self) -> None:
        self.is_under_way = not self._has_all

    def tell_sitemaps(self, tell: Telling) -> None:
        self.tell = tell

    async def claim(self) -> bool:
        return not self._has_all

    async def end(self) -> None:
        self.is_under_way = False

    async def give_up(self) -> None:
        self.is_under_way = False
