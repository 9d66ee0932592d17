"""Fetches whole sites: every page of the seeds' hosts, breadth-first, with limits on depth and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.rules.names import EVERY
from bigcrawl.spiders.broad import BroadSpider

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from typing import Self

    from scrapy.crawler import Crawler


class SiteSpider(BroadSpider):
    """`scrapy crawl site -a seeds="http://a.example/ http://b.example/" -a pages=500 -a depth=5`.

    `-a pages=` limits the URLs of each host, `-a depth=` their links from a seed: docs/guide/site.md. All else is as in
    `BroadSpider`. Source: UbiCrawler §3 (a visit per host, breadth-first), §6.2 (the limit on its depth).
    """

    name = "site"
    changeable_arguments = ("pages", "depth")
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        **BroadSpider.custom_settings,
        "BIGCRAWL_BUDGET_POLICY": "none",  # each host has its own bounds
        "BIGCRAWL_SCOPE": "host",
    }

    def __init__(
        self,
        seeds: str | PathLike[str] | Iterable[str] = "",
        pages: str | int = "",
        depth: str | int = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(seeds, **kwargs)
        self._bounds = {"pages": pages, "depth": depth}

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        bounds = {limit: _parse_number(value) for limit, value in spider._bounds.items() if value != ""}
        if bounds:
            try:
                rules = crawler.settings.getdict("BIGCRAWL_BUDGET_RULES")
            except ValueError:
                return spider  # the check of the settings reports it
            rule = rules.get(EVERY, {})
            rules[EVERY] = {**rule, **bounds} if isinstance(rule, dict) else rule  # its check reports a wrong one
            crawler.settings.set("BIGCRAWL_BUDGET_RULES", rules, "cmdline")
        return spider


def _parse_number(written: str | int) -> str | int:
    return int(written) if isinstance(written, str) and written.isdecimal() else written
