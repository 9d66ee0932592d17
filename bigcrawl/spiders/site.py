"""Whole sites: every page of the seeds' hosts, each host breadth-first, with bounds on depth and pages of a host."""

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

    Links are followed on the hosts of the seeds; another `-a scope=` widens that. A host's URLs are fetched in the
    order in which they were found, which is breadth-first, one at a time; many hosts are visited side by side.

    `-a pages=` is how many URLs of each host are fetched in all, `-a depth=` how many links from a seed they may be
    away. What is beyond is withheld and not lost: these are limits of a budget rule, and
    `scrapy frontier budget '*' --pages 1000` raises them in a running crawl. All else is as in `BroadSpider`.

    Source: UbiCrawler §3 (a visit per host, breadth-first), §6.2 (the limit on its depth).
    """

    name = "site"
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
        """Make the spider. Its bounds become the budget rule of every host, beside the rules of the settings."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        bounds = {limit: _number(value) for limit, value in spider._bounds.items() if value != ""}
        if bounds:
            try:
                rules = crawler.settings.getdict("BIGCRAWL_BUDGET_RULES")
            except ValueError:
                return spider  # the check of the settings names it
            rule = rules.get(EVERY, {})
            rules[EVERY] = {**rule, **bounds} if isinstance(rule, dict) else rule  # a wrong one is named by its check
            crawler.settings.set("BIGCRAWL_BUDGET_RULES", rules, "cmdline")
        return spider


def _number(written: str | int) -> str | int:
    """Return the number that a command line gives as text. Any other text is returned as it is: the rules refuse it."""
    return int(written) if isinstance(written, str) and written.isdecimal() else written
