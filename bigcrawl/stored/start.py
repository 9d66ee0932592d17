"""The start of a spider over stored pages: its own start requests, or none if it is given all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.adapter.spider_start import SpiderStart

if TYPE_CHECKING:
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
    from bigcrawl.scheduler.adapter.spider_start import Telling


class StoredStart(SpiderStart):
    """The start of a run over stored pages, which nothing has to be claimed for.

    Attributes:
        is_under_way: whether the spider may be making start requests.
        tell: called with the URL of each stored robots.txt that names sitemaps, and with their URLs; None if the spider
            does not want them.
    """

    def __init__(self, flow: SpiderFlow, shutdown: Shutdown, *, has_all: bool) -> None:
        """`has_all` says that the spider is given all pages, and makes no start requests."""
        super().__init__(flow, shutdown)
        self._has_all = has_all
        self.is_under_way = False
        self.tell: Telling | None = None

    def begin(self) -> None:
        """The pages were found."""
        self.is_under_way = not self._has_all

    def tell_sitemaps(self, tell: Telling) -> None:
        """Call `tell` with the URL of each stored robots.txt that names sitemaps, and with the sitemaps' URLs."""
        self.tell = tell

    async def claim(self) -> bool:
        """Whether the start requests are to run: not if the spider is given all pages."""
        return not self._has_all

    async def end(self) -> None:
        """All start requests were made."""
        self.is_under_way = False

    async def give_up(self) -> None:
        """The spider's `start` failed; Scrapy logs that."""
        self.is_under_way = False
