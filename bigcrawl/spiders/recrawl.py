"""Keeps all pages reachable from the seeds up to date, by fetching each again when it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.links import Links
from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.url.header import url_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from os import PathLike
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

_ON = frozenset({"1", "true", "yes", "on"})


class RecrawlSpider(BroadSpider):
    """`scrapy crawl recrawl -a seeds=FILE -a policy=freshness -a every=86400 -a changes=1 -O changes.jsonl`.

    Visits the pages of a `BroadSpider` again by a policy: docs/guide/recrawl.md. Only changed pages are parsed. With
    `-a changes=1` there is an item for each page that was added, has changed, or is gone.
    """

    name = "recrawl"
    changeable_arguments = ("policy", "every", "visits", "changes", "cycles")
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        **BroadSpider.custom_settings,
        "BIGCRAWL_REVISIT": "change-rate",
    }

    def __init__(
        self,
        seeds: str | PathLike[str] | Iterable[str] = "",
        policy: str = "",
        every: str | float = "",
        visits: str | int = "",
        changes: str | bool = "",
        cycles: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(seeds, **kwargs)
        self._revisit_settings = {
            "BIGCRAWL_REVISIT": policy or ("cycles" if cycles else ""),
            "BIGCRAWL_CYCLES": cycles,
            "BIGCRAWL_REVISIT_SECONDS": every,
            "BIGCRAWL_REVISIT_VISITS_MAX": visits,
        }
        self._gives_changes = str(changes).lower() in _ON

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name, value in spider._revisit_settings.items():
            if value != "":
                crawler.settings.set(name, value, "cmdline")
        return spider

    @property
    def follows_moved_pages(self) -> bool:
        """Whether the spider itself gets permanent redirects, to report and follow them."""
        return self._gives_changes

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        visit = response.meta.get("bigcrawl_visit")
        if visit is not None and self._gives_changes:
            yield {"url": response.url, **visit}
            moved = url_in(response.headers.getlist("Location"), response.url)
            if moved is not None and response.status in (301, 308):
                yield Links([moved], canonical=True)
        async for found in super().parse(response, **kwargs):
            yield found
